"""An index together with what searches it: a recipe, an encoder, names and words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_flag, check_k, check_type, check_whole, wrong_type
from ..encoders import rerank
from ..encoders.named import load_model
from ..errors import HopfuseError, InputError
from ..index import Index, LiveIndex
from ..index.live import AtLeast
from ..index.search_filter import valid_too
from ..recipes import AllowScope, Needs, Recipe, SearchResult
from ..types import Hits
from .collaborators import Collaborators, recipe_class
from .description import Description, describe
from .documents import TitledTexts, first_of_documents, traces_of
from .encoding import shared
from .questions import has_gaps, prepared, raise_first, read_inputs, unread_rows
from .state import RetrieverSettings, RetrieverState, renamed

#: Hits of each question that a reranker reads, at least.
RERANKED = 50


class Retriever:
    """Searches an index by what it holds: its vectors, graph, facts and words, its encoder and its names.

    Every choice that an argument does not make is made here, from the index. :meth:`describe` says what was chosen,
    what is missing and what that costs. Safe for threads; a pickle holds the index (an opened one by its path) and the
    arguments.

    Parameters
    ----------
    index : Index or LiveIndex
        A live index is searched with all that this process has committed to its directory, by any thread and any live
        index of it; what other processes commit is searched after :meth:`refresh`, or with ``at_least``.
    recipe : str or a class of recipes, optional
        A key of :data:`hopfuse.recipes.RECIPES`; by default guided-walk if the index has vectors and a graph, else
        hybrid-rrf.
    config : optional
        The recipe's config, by default its own; or a mapping of some of its fields, as ``options``.
    encoder : Encoder or str, optional
        An encoder, or its name (:func:`hopfuse.encoders.open_encoder`), such as ``"wordllama:64"``, or ``"none"``.
        By default the encoder whose name the index keeps, if it is installed.
    words : leg or {"auto", "bm25", "fts5", "fts5:unicode61", "fts5:trigram", "none"}, optional
        The lexical leg. By default the recipe decides: hybrid-rrf uses the index's own BM25, or builds one; guided-walk
        uses the index's own, if there is one; the others use none.
    names : matcher or {"any-case", "case-sensitive", "none"}, optional
        What finds entities in questions. By default ``"any-case"``: :class:`hopfuse.extract.QuestionMatcher`.
    reranker : Reranker, optional
        Scores the first 50 hits of each question anew, or k if that is more (:mod:`hopfuse.encoders`).
    llm : optional
        The language model of policy-rag, for :meth:`answer` and a policy that asks it.
    fact_vectors : optional
        Vectors of the facts for policy-rag, by default the encoder's: each distinct text is encoded once.
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else all processors of the process.
    strict : bool
        Raise what would be a note beside the hits: an entity that the index does not have, a vector that the recipe
        does not read, a question of which the index knows no word and no name.
    **options
        Fields of the recipe's config; they override those of ``config``.

    Raises
    ------
    InputError
        An argument that is not as above, or that the recipe does not read; an index that the recipe cannot run on.
    MissingExtraError
        The packages of an encoder or leg that an argument names are not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> texts = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "The sea."]
    >>> retriever = hf.Retriever(hf.Index.from_texts(texts))
    >>> found = retriever.search("Who built the engine?", k=1)
    >>> [hit.text for hit in found[0]]
    ['The Engine was built by Babbage.']
    """

    def __init__(
        self,
        index: Index | LiveIndex[Index],
        recipe: Any = None,
        *,
        config: Any = None,
        encoder: Any = None,
        words: Any = None,
        names: Any = None,
        reranker: Any = None,
        llm: Any = None,
        fact_vectors: Any = None,
        threads: int | None = None,
        strict: bool = False,
        **options: Any,
    ) -> None:
        if isinstance(index, str | os.PathLike):
            raise wrong_type(index, "index", "an index; a directory is opened by Retriever.open(directory)")
        self._live = index if isinstance(index, LiveIndex) else None
        first = index.index if isinstance(index, LiveIndex) else index
        check_type(first, "index", Index, "an Index or a LiveIndex; a directory is opened by Retriever.open(directory)")
        if self._live is not None:
            _check_states(words=words, fact_vectors=fact_vectors, names=names)
        if reranker is not None and not callable(getattr(reranker, "score", None)):
            raise wrong_type(reranker, "reranker", "an object with score(queries, candidates)")
        self._lock = RLock()
        config, options = _fields(config, options)
        self._settings = RetrieverSettings(
            recipe, config, options, words, shared(reranker), llm, threads, check_flag(strict, "strict")
        )
        self._given = {"encoder": encoder, "names": names, "fact_vectors": fact_vectors}
        self._state = RetrieverState.make(Collaborators(first, encoder, names, fact_vectors), self._settings)
        self._state.check_read(**self._given, words=words, llm=llm, reranker=reranker)
        if recipe is None and (config is not None or options):  # they are those of the recipe that was chosen
            self._settings = replace(self._settings, recipe=self._state.kind, chosen=True)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], recipe: Any = None, **arguments: Any) -> Retriever:
        """Return a retriever over a saved index, which follows later changes of the directory.

        Those of this process are searched at once, those of others after :meth:`refresh` or with ``at_least``.

        Parameters
        ----------
        directory : path
        recipe, **arguments
            As of :class:`Retriever`.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> generation = hf.Index.from_texts(["The sea.", "A river."]).save(folder)
        >>> hf.Retriever.open(folder).search("Which river?", k=1)[0][0].text
        'A river.'
        """
        if isinstance(directory, Index | LiveIndex):
            raise wrong_type(
                directory, "directory", "the path of a saved index; an index is searched by Retriever(index)"
            )
        return cls(Index.open(directory, live=True), recipe, **arguments)

    # ---- What it is --------------------------------------------------------------------------------------------------

    @property
    def index(self) -> Index:
        """The state of the index that is searched."""
        return self._now().index

    @property
    def recipe(self) -> Recipe:
        """The recipe over that state."""
        return self._now().recipe

    @property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        return self._now().needs

    @property
    def encoder(self) -> Any:
        """The encoder of questions, or None."""
        return self._now().parts.encoder

    @property
    def words(self) -> Any:
        """The lexical leg of the recipe, or None."""
        return getattr(self.recipe, "lexical", None)

    @property
    def threads(self) -> int | None:
        """The number of CPU threads, or None for the default."""
        return self._settings.threads

    @property
    def dim(self) -> int | None:
        """The dimension of questions' vectors; None if the recipe reads none."""
        space = self._now().space
        return None if space is None else space.dim

    def describe(self) -> Description:
        """Return which recipe, encoder, names and words are used, what is missing and what that costs."""
        own = self._settings
        return describe(self._now(), chosen=own.chosen or own.recipe is None, reranker=own.reranker)

    def __repr__(self) -> str:
        state = self._now()
        return f"Retriever({state.index!r}, {state.kind.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._live is not None:
            return _reopened, (os.fspath(self._live.directory), self._settings, self._given)
        return _remade, (self._state.index, self._settings, self._given)

    # ---- Other retrievers over the same index ------------------------------------------------------------------------

    def variant(
        self, recipe: Any = None, *, config: Any = None, words: Any = None, encoder: Any = None, **options: Any
    ) -> Retriever:
        """Return a retriever with another recipe, or with other options of this one, that shares everything else.

        Parameters
        ----------
        recipe : str or a class of recipes, optional
            By default this one's.
        config, **options
            As of :class:`Retriever`. Options of this retriever's own recipe change its config.
        words : optional
            As of :class:`Retriever`; by default as this one's argument, if the recipe reads words.
        encoder : Encoder, optional
            Encodes in place of this one's encoder, as one that caches its vectors.

        Examples
        --------
        >>> import hopfuse as hf
        >>> retriever = hf.Retriever(hf.Index.from_texts(["The sea.", "A river."]))
        >>> retriever.variant(rank_constant=60).recipe.config.rank_constant
        60.0
        """
        if self._live is not None:
            _check_states(words=words)
        own, state = self._settings, self._now()
        config, options = _fields(config, options)
        kind = state.kind if recipe is None else recipe_class(state.index, recipe)
        same = kind is state.kind
        base = state.recipe.config if same and config is None else config
        leg = words
        if words is None and "lexical" in kind.collaborators:
            is_leg = not (own.words is None or isinstance(own.words, str))
            leg = None if is_leg and kind.ranks != state.kind.ranks else own.words  # a leg is over what is ranked
        changed = replace(own, recipe=kind, config=base, options=options, words=leg)
        if "llm" not in kind.collaborators:
            changed = replace(changed, llm=None)
        if kind.ranks != "passages":
            changed = replace(changed, reranker=None)
        parts = state.parts if encoder is None else state.parts.with_encoder(encoder)
        given = self._given if encoder is None else {**self._given, "encoder": encoder}
        made = _made(parts, changed, given, self._live)
        made._state.check_read(words=words)
        return made

    def of_state(self, index: Index) -> Retriever:
        """Return this retriever for another state of its index: its encoder, names and vectors of facts are kept.

        Raises
        ------
        InputError
            ``words``, ``fact_vectors`` or ``names`` are an argument that was made from this state.
        """
        state = self._now()
        if index is not state.index:
            _check_states(words=self._settings.words, **{name: self._given[name] for name in ("fact_vectors", "names")})
        return _made(state.parts.of_state(index), self._settings, self._given)

    def refresh(self) -> int:
        """Read later changes of a live index, and return the seq that is searched from now on."""
        if self._live is None:
            return self.index.seq
        return self._now("latest").index.seq

    def warm_up(self, k: int = 10) -> None:
        """Search once and read all ids, so that the first question does not wait for what is made only once."""
        state = self._now()
        index = state.index
        if not index.num_passages:
            return
        if hasattr(state.recipe, "warmup"):
            state.recipe.warmup(k)
        if state.needs.entities:
            state.parts.names_lack()
        if state.needs.vectors or state.encodes_more:
            load_model(state.parts.encoder)
        text, vector, entities = self.sample()
        self._search(state, [text], [vector], [entities], k=min(k, index.num_passages))
        index.row_of(index.passage_ids[0])

    def sample(self) -> tuple[str, NDArray[np.float32] | None, list[str | int]]:
        """Return a text, vector and entities that a search takes, and that need no encoder and no matcher."""
        index, dim = self.index, self.dim
        text = index.texts[0][:200].strip() if index.num_passages else ""
        first = islice(index.entity_names, 100)  # a name in the text would be taken out of it, and the rest encoded
        unnamed = (entity for entity, name in enumerate(first) if name.casefold() not in text.casefold())
        entities: list[str | int] = list(islice(unnamed, 1))
        return text or "text", None if dim is None else np.full(dim, 1 / dim, np.float32), entities

    # ---- Searching ---------------------------------------------------------------------------------------------------

    def search(
        self,
        questions: str | Sequence[str | None] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any] | None] | None = None,
        k: int = 10,
        allow: Any = None,
        allow_scope: AllowScope = "isolated",
        at: Any = None,
        at_least: AtLeast = None,
        timeout: float = 10.0,
        per_document: int | None = None,
        trace: bool = False,
    ) -> SearchResult:
        """Rank the passages (or entities, see ``describe().ranks``) for one question or many.

        Parameters
        ----------
        questions : str or sequence of B (str or None), optional
            One question is a batch of one. Without a text, a question needs the vector and the entities that the recipe
            reads.
        vectors : array_like of float (B, d), or sequence of B vectors or None, optional
            What is None is made by the encoder.
        entities : sequence of B (sequence of str, int or Match, or None), optional
            Names as in the questions, or entity numbers. What is None is found in the text.
        k : int
            Hits per question, at most the number of passages.
        allow : Where, ids of passages, bool (P,) or (B, P), or a sequence of B of these or None, optional
            Passages that a question may find.
        allow_scope : {"isolated", "results"}
            As of the recipes: by default the answer equals that of an index with only the allowed passages.
        at : datetime, np.datetime64, str, int or float, optional
            Allow only passages that are valid at this time (:meth:`hopfuse.Index.valid_at`), of those in ``allow``.
        at_least : int or "latest", optional
            The seq of a change that must be searched: a live index waits for it. ``"latest"`` searches all that any
            process has committed until now. What this process has committed is always searched.
        timeout : float
            Seconds to wait for ``at_least``.
        per_document : int, optional
            The largest number of hits of a document (:attr:`hopfuse.Index.documents`), and one of equal texts, from the
            ranking as far as it reaches; ``counts`` says how many there are.
        trace : bool
            Adds ``traces``, as of the recipe.

        Returns
        -------
        SearchResult
            As of the recipe; ``notes`` says, for each question, what was given and not used, or not known.

        Raises
        ------
        InputError
            An argument that is not as above, or an input that is missing and cannot be made. With ``strict``, what
            would be a note.
        TimeoutError
            The seq ``at_least`` is not there within ``timeout`` seconds.

        Examples
        --------
        >>> import hopfuse as hf
        >>> rows = [{"id": "a", "text": "Ada wrote."}, {"id": "b", "text": "Ada sailed."}, {"id": "c", "text": "Sea."}]
        >>> retriever = hf.Retriever(hf.Index.from_texts(rows))
        >>> [[hit.id for hit in hits] for hits in retriever.search(["Who sailed?", "the sea"], k=1)]
        [['b'], ['c']]
        """
        state, k = self._now(at_least, timeout), check_whole(k, "k")
        texts = [questions] if isinstance(questions, str) else questions
        if at is not None:
            batch = next((len(one) for one in (texts, vectors, entities) if one is not None), 0)
            allow = valid_too(state.index, allow, at, batch)
        options: dict[str, Any] = {"allow": allow, "allow_scope": allow_scope, "trace": trace}
        found = self._search(state, texts, vectors, entities, k=k, per_document=per_document, **options)
        if self._settings.strict:
            raise_first(found.notes)
        return found

    def prepare(
        self, questions: str | Sequence[str | None] | None, *, vectors: Any = None, entities: Any = None
    ) -> tuple[Any, list[Any] | None]:
        """Return the vectors and the entities of questions that a search would read, for searches that repeat.

        Parameters
        ----------
        questions, vectors, entities
            As of :meth:`search`.

        Returns
        -------
        vectors : array (B, d) or None
            None if the recipe reads no vectors.
        entities : list of B lists, or None
            None if the recipe reads no entities.

        Examples
        --------
        >>> import hopfuse as hf
        >>> index = hf.Index.build(passages=[{"text": "Ada wrote."}], entities=["Ada"], graph=[{"src": 0, "dst": 1}])
        >>> vectors, entities = hf.Retriever(index, encoder="none").prepare(["Who is Ada?"])
        >>> vectors, [match.surface for match in entities[0]]
        (None, ['Ada'])
        """
        texts = [questions] if isinstance(questions, str) else questions
        return prepared(self._now(), texts, vectors, entities)

    def check(self, k: int = 10, *, per_document: int | None = None) -> SearchResult:
        """Search no questions, which raises what every search would; return the result, with the recipe's lists."""
        state = self._now()
        dim = self.dim
        vectors = None if dim is None else np.zeros((0, dim), np.float32)
        entities: list[Any] | None = [] if state.needs.entities else None
        return self._search(state, [], vectors, entities, k=k, per_document=per_document)

    def answer(self, questions: str | Sequence[str], found: SearchResult) -> list[str]:
        """Return the language model's answers from the first hits of a search.

        Raises
        ------
        InputError
            The recipe has no answers, or there is no language model.
        """
        state = self._now()
        if not state.kind.answers:
            raise InputError(
                "unsupported",
                "recipe",
                "{field} is {given}, which has no answers; use policy-rag",
                given=state.kind.name,
            )
        asked = [questions] if isinstance(questions, str) else list(questions)
        answers: list[str] = state.recipe.answer(asked, found)  # type: ignore[attr-defined]
        return answers

    def check_question(self, text: str | None = None, vector: Any = None, entities: Any = None) -> None:
        """Refuse a question that a search would refuse, such as one without an input that cannot be made.

        Fields of errors are named as for one question: ``"text"``, ``"vector"`` or ``"entities[2]"``.
        """
        state = self._now()
        if self._settings.strict:
            for _, note in unread_rows(state, 1, [vector], [entities]):
                raise note
        state.check_question(text, vector, entities)

    def encodes(self, text: str | None = None, vector: Any = None) -> bool:
        """Return whether a search calls the encoder for a question with this text and vector.

        It may also do so for given names that the index does not have.

        Examples
        --------
        >>> import hopfuse as hf
        >>> retriever = hf.Retriever(hf.Index.from_texts(["The sea.", "A river."]), encoder="none")
        >>> retriever.encodes("Which river?")
        False
        """
        return self._now().encodes(text, vector)

    # ---- Inside ------------------------------------------------------------------------------------------------------

    def _search(
        self,
        state: RetrieverState,
        texts: Any,
        vectors: Any,
        entities: Any,
        *,
        k: int,
        per_document: int | None = None,
        **options: Any,
    ) -> SearchResult:
        own, index = self._settings, state.index
        depth = self._depth(state, texts, k, per_document)
        try:
            own_vectors, own_entities = read_inputs(state, texts, vectors, entities)
            found = state.recipe.search(texts, vectors=own_vectors, entities=own_entities, k=depth, **options)
        except HopfuseError as error:
            raise renamed(error) from error.__cause__
        hits: Hits = found.hits
        if own.reranker is not None:
            hits = rerank(hits, texts, TitledTexts(index), own.reranker, k=max(RERANKED, k))
        if per_document is not None:
            hits = first_of_documents(hits, index, per_document, k)
        if hits is not found.hits:
            hits = hits.head(k)
            found = replace(found, hits=hits, traces=traces_of(found.traces, hits))
        for b, note in unread_rows(state, len(found), vectors, entities):
            found.notes[b].append(note)
        return found

    def _depth(self, state: RetrieverState, texts: Any, k: int, per_document: int | None) -> int:
        """Return the number of hits of which the first k are kept, after a reranker and the limit of a document."""
        reranker = self._settings.reranker
        if reranker is not None and (texts is None or has_gaps(texts)):
            raise InputError("missing", "questions", "{field} is missing, and the reranker reads it; give all texts")
        if per_document is None:
            return k if reranker is None else max(check_k(k), min(RERANKED, state.recipe.reach))
        check_whole(per_document, "per_document")
        if state.kind.ranks != "passages":
            raise InputError(
                "unsupported",
                "per_document",
                "{field} is given, and the hits of {recipe} are {ranks}, which have no documents; leave it out",
                recipe=state.kind.name,
                ranks=state.kind.ranks,
            )
        return max(check_k(k), state.recipe.reach)

    def _now(self, at_least: AtLeast = None, timeout: float = 10.0) -> RetrieverState:
        """Return the state that is searched; a live index's new snapshot is taken over."""
        state, live = self._state, self._live
        if live is None:
            if at_least is not None and (isinstance(at_least, str) or state.index.seq < at_least):
                raise InputError(
                    "unsupported",
                    "at_least",
                    "{field} is {given!r}, and the retriever searches one state of the index, at {allowed}; open it "
                    "with Retriever.open, which follows changes",
                    given=at_least,
                    allowed=state.index.seq,
                )
            return state
        index = live.snapshot(at_least, timeout)
        if index is state.index:
            return state
        waits = at_least is not None or state.index.seq < live.committed
        if not self._lock.acquire(blocking=waits):
            return state  # until the thread that has the lock has made the new one
        try:
            index = live.index  # another thread may have taken over a later one
            if self._state.index is not index:
                self._state = RetrieverState.make(self._state.parts.of_state(index), self._settings)
            return self._state
        finally:
            self._lock.release()


def _check_states(**given: Any) -> None:
    """Refuse what was made from one state of an index that changes."""
    for name, one in given.items():
        if one is not None and not isinstance(one, str) and not callable(getattr(one, "of_state", None)):
            raise InputError(
                "conflict",
                name,
                "{field} was made from one state of the index, which changes; leave it out, or give a name",
            )


def _made(
    parts: Collaborators, settings: RetrieverSettings, given: dict[str, Any], live: LiveIndex[Index] | None = None
) -> Retriever:
    """Return a retriever of checked arguments; those of another one that this recipe does not read are kept."""
    made = object.__new__(Retriever)
    made._live, made._lock, made._settings, made._given = live, RLock(), settings, given
    made._state = RetrieverState.make(parts, settings)
    return made


def _remade(index: Index, settings: RetrieverSettings, given: dict[str, Any]) -> Retriever:
    return _made(Collaborators(index, **given), settings, given)


def _reopened(directory: str, settings: RetrieverSettings, given: dict[str, Any]) -> Retriever:
    live = Index.open(directory, live=True)
    return _made(Collaborators(live.index, **given), settings, given, live)


def _fields(config: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a config and options; a config that is a mapping is options, whatever their names."""
    return (None, {**config, **options}) if isinstance(config, Mapping) else (config, options)
