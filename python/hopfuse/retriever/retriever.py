"""An index together with what searches it: a recipe, an encoder, names and words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_flag, check_k, check_type, check_whole, wrong_type
from ..encoders import rerank
from ..errors import HopfuseError, InputError
from ..extract import QuestionMatcher
from ..index import Index, LiveIndex
from ..recipes import AllowScope, Needs, Recipe, SearchResult, apply_options, spelled
from ..types import Hits
from .choices import recipe_class, unread, words_leg
from .collaborators import Collaborators, NoNames
from .description import Description
from .documents import TitledTexts, first_of_documents
from .serialized import shared

#: Hits of each question that a reranker reads.
RERANKED = 50
#: Arguments of recipes that have another name here, and the argument of a question by its field in a note.
_ARGUMENTS = {"queries": "questions", "lexical": "words", "matcher": "names"}
_COLUMNS = {"text": "questions", "vector": "vectors", "entities": "entities"}
#: What is lacking where an input cannot be made.
_MAKERS = {"vector": "no encoder makes", "entities": "nothing reads"}


@dataclass(frozen=True)
class _Settings:
    """The arguments of a retriever beside its index and its collaborators."""

    recipe: Any = None
    config: Any = None
    options: Mapping[str, Any] | None = None
    words: Any = None
    reranker: Any = None
    llm: Any = None
    threads: int | None = None
    strict: bool = False


class _State(NamedTuple):
    """A state of the index, with what searches it."""

    parts: Collaborators
    kind: type[Recipe]
    recipe: Recipe


class Retriever:
    """Searches an index by what it holds: its vectors, graph, facts and words, its encoder and its names.

    Every choice that an argument does not make is made here, from the index. :meth:`describe` says what was chosen,
    what is missing and what that costs. Safe for threads; a pickle holds the index (an opened one by its path) and the
    arguments.

    Parameters
    ----------
    index : Index or LiveIndex
        A live index is searched as it is at its last snapshot (:attr:`hopfuse.LiveIndex.index`).
    recipe : str or a class of recipes, optional
        A key of :data:`hopfuse.recipes.RECIPES`; by default guided-walk if the index has vectors and a graph, else
        hybrid-rrf.
    config : optional
        The recipe's config, by default its own; or a mapping of some of its fields, as ``options``.
    encoder : Encoder or str, optional
        An encoder, or its name: ``"wordllama"``, ``"wordllama:DIM"``, ``"sentence-transformers:FOLDER"`` or ``"none"``.
        By default the encoder whose name the index keeps, if it is installed.
    words : leg or {"auto", "bm25", "fts5", "none"}, optional
        The lexical leg. By default the recipe decides: hybrid-rrf uses the index's own BM25, or builds one; guided-walk
        uses the index's own, if there is one; the others use none.
    names : matcher or {"any-case", "case-sensitive", "none"}, optional
        What finds entities in questions. By default ``"any-case"``: :class:`hopfuse.extract.QuestionMatcher`.
    reranker : Reranker, optional
        Scores the first 50 hits of each question anew (:mod:`hopfuse.encoders`).
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
        self._check_states(words=words, fact_vectors=fact_vectors)
        self._lock = RLock()
        config, options = _fields(config, options)
        self._settings = _Settings(
            recipe, config, options, words, shared(reranker), llm, threads, check_flag(strict, "strict")
        )
        self._given = {"encoder": encoder, "names": names, "fact_vectors": fact_vectors}
        self._state = self._of(Collaborators(first, encoder, names, fact_vectors))
        self._check_given(first)

    def _check_states(self, **given: Any) -> None:
        """Refuse what was made from one state of a live index."""
        for name, one in given.items():
            if self._live is not None and one is not None and not isinstance(one, str):
                raise InputError(
                    "conflict",
                    name,
                    "{field} was made from one state of the index, which changes; leave it out, or give a name",
                )

    @classmethod
    def open(cls, directory: str | os.PathLike[str], recipe: Any = None, **arguments: Any) -> Retriever:
        """Return a retriever over a saved index, which follows later changes of the directory (:meth:`refresh`).

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
        return cls(Index.open(directory, live=True), recipe, **arguments)

    # ---- What it is --------------------------------------------------------------------------------------------------

    @property
    def index(self) -> Index:
        """The state of the index that is searched."""
        return self._now().parts.index

    @property
    def recipe(self) -> Recipe:
        """The recipe over that state."""
        return self._now().recipe

    @property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        return self._now().recipe.needs

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
        state = self._now()
        space = state.kind.space(state.parts.index)
        return None if space is None or not state.recipe.needs.vectors else space.dim

    def describe(self) -> Description:
        """Return which recipe, encoder, names and words are used, what is missing and what that costs."""
        state = self._now()
        index, needs, parts = state.parts.index, state.recipe.needs, state.parts
        leg, facts = getattr(state.recipe, "lexical", None), "fact_vectors" in state.kind.collaborators
        encodes = parts.encoder is not None and (needs.vectors or self._encodes_more(state))
        read = {"vector": needs.vectors, "text": needs.texts, "entities": needs.entities, "words": needs.words}
        return Description(
            recipe=state.kind.name,
            ranks=state.kind.ranks,
            chosen=self._settings.recipe is None,
            reads=tuple(name for name, one in read.items() if one),
            encoder=_encoder_words(parts.encoder) if encodes else None,
            names=_names_words(parts.names) if needs.entities else None,
            words=None if leg is None else repr(leg),
            facts=_facts_words(state) if facts and index.facts is not None else None,
            reranker=None if self._settings.reranker is None else repr(self._settings.reranker),
            lacks=_lacks(state),
        )

    def __repr__(self) -> str:
        state = self._now()
        return f"Retriever({state.parts.index!r}, {state.kind.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        own = self._settings
        arguments = {
            "config": own.config,
            "words": own.words,
            "reranker": getattr(own.reranker, "_inner", own.reranker),
            "llm": own.llm,
            "threads": own.threads,
            "strict": own.strict,
            **self._given,
            **(own.options or {}),
        }
        if self._live is not None:
            return _reopened, (os.fspath(self._live.directory), own.recipe, arguments)
        return _made, (self._state.parts.index, own.recipe, arguments)

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
        self._check_states(words=words)
        own, state = self._settings, self._now()
        config, options = _fields(config, options)
        kind = state.kind if recipe is None else recipe_class(state.parts.index, recipe)
        same = kind is state.kind
        base = state.recipe.config if same and config is None else config
        leg = own.words if words is None and "lexical" in kind.collaborators else words
        changed = replace(own, recipe=kind, config=base, options=options, words=leg)
        if "llm" not in kind.collaborators:
            changed = replace(changed, llm=None)
        if kind.ranks != "passages":
            changed = replace(changed, reranker=None)
        other = self._like(changed, state.parts if encoder is None else state.parts.with_encoder(encoder), self._live)
        if encoder is not None:
            other._given = {**self._given, "encoder": encoder}
        return other

    def of_state(self, index: Index) -> Retriever:
        """Return this retriever for another state of its index: its encoder, names and vectors of facts are kept."""
        return self._like(self._settings, self._now().parts.of_state(index), None)

    def refresh(self) -> int:
        """Read later changes of a live index, and return the seq that is searched from now on."""
        if self._live is not None:
            self._live.refresh()
        return self.index.seq

    def warm_up(self, k: int = 10) -> None:
        """Search once and read all ids, so that the first question does not wait for what is made only once."""
        state = self._now()
        index = state.parts.index
        if not index.num_passages:
            return
        if hasattr(state.recipe, "warmup"):
            state.recipe.warmup(k)
        if state.recipe.needs.entities:
            state.parts.names_lack()
        text, vector, entities = self.sample()
        self._search(state, [text], [vector], [entities], k=min(k, index.num_passages))
        index.row_of(index.passage_ids[0])

    def sample(self) -> tuple[str, NDArray[np.float32] | None, list[str | int]]:
        """Return a text, vector and entities that a search takes, and that need no encoder and no matcher."""
        index, dim = self.index, self.dim
        text = index.texts[0][:200].strip() if index.num_passages else ""
        entities: list[str | int] = [0] if index.num_entities else []
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
        at_least: int | None = None,
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
            As of the recipes: by default the answer is that of an index of the allowed passages alone.
        at_least : int, optional
            The seq of a change that must be searched; a live index waits for it.
        timeout : float
            Seconds to wait for ``at_least``.
        per_document : int, optional
            At most so many hits of a document (:attr:`hopfuse.Index.documents`), and one of equal texts, from the
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
        state = self._now(at_least, timeout)
        texts = [questions] if isinstance(questions, str) else questions
        options: dict[str, Any] = {"allow": allow, "allow_scope": allow_scope, "trace": trace}
        return self._search(state, texts, vectors, entities, k=k, per_document=per_document, **options)

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
        state = self._now()
        needs, parts = state.recipe.needs, state.parts
        texts: Any = [questions] if isinstance(questions, str) else questions
        vectors, entities = vectors if needs.vectors else None, entities if needs.entities else None
        self._check_rows(state, texts, vectors, entities)
        for b, vector in enumerate(() if vectors is None else vectors):
            if vector is not None:
                try:
                    _check_vector(np.asarray(vector), state)
                except InputError as error:
                    raise error.about(f"vectors[{b}]") from None
        size = next((len(rows) for rows in (texts, vectors, entities) if rows is not None), 0)
        if needs.entities:
            entities = _filled(entities, size, lambda rows: parts.names.match([texts[b] for b in rows]))
        if needs.vectors:
            named = [()] * size if entities is None else entities

            def encode(rows: list[int]) -> Any:
                assert parts.encoder is not None
                asked = spelled([texts[b] for b in rows], [named[b] for b in rows], parts.index)
                return parts.encoder.encode_queries(asked)

            vectors = _filled(vectors, size, encode)
        return None if vectors is None else np.asarray(vectors), entities

    def check(self, k: int = 10, *, per_document: int | None = None) -> SearchResult:
        """Search no questions, which raises what every search would; return the result, with the recipe's lists."""
        state = self._now()
        dim = self.dim
        vectors = None if dim is None else np.zeros((0, dim), np.float32)
        entities: list[Any] | None = [] if state.recipe.needs.entities else None
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

        The field of an error is that of one question: ``"text"``, ``"vector"`` or ``"entities[2]"``.
        """
        state = self._now()
        _check_inputs(state, text, vector, entities)
        lack = _maker_lack(state, vector, entities)
        if lack is not None:
            raise _lacking(lack[0], f"{_MAKERS[lack[0]]} it from the text; give it")
        needs = state.recipe.needs
        if self._settings.strict:
            for _, note in _given_rows("vectors", [vector], needs.vectors):
                raise note
            for _, note in _given_rows("entities", [entities], needs.entities):
                raise note
        if needs.vectors and vector is not None:
            _check_vector(np.asarray(vector), state)
        if entities is not None and needs.entities:
            _check_numbers(entities, state.parts.index)

    # ---- Inside ------------------------------------------------------------------------------------------------------

    def _search(
        self,
        state: _State,
        texts: Any,
        vectors: Any,
        entities: Any,
        *,
        k: int,
        per_document: int | None = None,
        **options: Any,
    ) -> SearchResult:
        needs, own = state.recipe.needs, self._settings
        unused = _given_rows("vectors", vectors, needs.vectors) + _given_rows("entities", entities, needs.entities)
        vectors, entities = vectors if needs.vectors else None, entities if needs.entities else None
        depth = self._depth(state, texts, k, per_document)
        try:
            self._check_rows(state, texts, vectors, entities)
            found = state.recipe.search(texts, vectors=vectors, entities=entities, k=depth, **options)
        except HopfuseError as error:
            raise _renamed(error) from error.__cause__
        if own.reranker is not None or per_document is not None:
            hits, index = found.hits, state.parts.index
            if own.reranker is not None:
                hits = rerank(hits, texts, TitledTexts(index), own.reranker, k=RERANKED)
            hits = hits.head(k) if per_document is None else first_of_documents(hits, index, per_document, k)
            found = replace(found, hits=hits, traces=_traces_of(found.traces, hits))
        for b, note in unused:
            found.notes[b].append(note)
        if own.strict:
            _raise_first(found.notes)
        return found

    def _depth(self, state: _State, texts: Any, k: int, per_document: int | None) -> int:
        """Return the number of hits of which the first k are kept, after a reranker and the limit of a document."""
        reranker, ranks = self._settings.reranker, state.kind.ranks
        if reranker is not None and (texts is None or _has_gaps(texts)):
            raise InputError("missing", "questions", "{field} is missing, and the reranker reads it; give all texts")
        if per_document is None:
            return k if reranker is None else max(check_k(k), min(RERANKED, state.recipe.reach))
        check_whole(per_document, "per_document")
        if ranks != "passages":
            raise InputError(
                "unsupported",
                "per_document",
                "{field} is given, and the hits of {recipe} are {ranks}, which have no documents; leave it out",
                recipe=state.kind.name,
                ranks=ranks,
            )
        return max(check_k(k), state.recipe.reach)

    def _check_rows(self, state: _State, texts: Any, vectors: Any, entities: Any) -> None:
        """Refuse the first question that lacks an input which cannot be made."""
        columns = [rows if rows is None or _has_gaps(rows) else True for rows in (texts, vectors, entities)]
        batch = max((len(one) for one in columns if isinstance(one, list | tuple)), default=0)
        for b in range(max(1, batch)):
            given = [next(iter(one[b : b + 1]), None) if isinstance(one, list | tuple) else one for one in columns]
            try:
                _check_inputs(state, *given)
            except InputError as error:
                place = f"[{b}]" if batch else ""
                raise error.about(_COLUMNS[str(error.field)] + place) from None
            lack = _maker_lack(state, *given[1:])
            if lack is not None:
                raise lack[1].about()

    def _now(self, at_least: int | None = None, timeout: float = 10.0) -> _State:
        """Return the state that is searched; a live index's new snapshot is taken over."""
        state, live = self._state, self._live
        if live is None:
            if at_least is not None and state.parts.index.seq < at_least:
                raise InputError(
                    "unsupported",
                    "at_least",
                    "{field} is {given}, and the retriever searches one state of the index, at {allowed}; open it with "
                    "Retriever.open, which follows changes",
                    given=at_least,
                    allowed=state.parts.index.seq,
                )
            return state
        index = live.index if at_least is None else live.wait_for(at_least, timeout)
        if index is state.parts.index:
            return state
        with self._lock:
            if self._state.parts.index is not index:
                self._state = self._of(self._state.parts.of_state(index))
            return self._state

    def _of(self, parts: Collaborators) -> _State:
        """Return the recipe over a state of the index."""
        own, index = self._settings, parts.index
        kind = recipe_class(index, own.recipe)
        try:
            if own.config is not None:
                check_type(own.config, "config", kind.Config, f"a {kind.Config.__name__}, which {kind.name} reads")
            config = apply_options(kind.Config() if own.config is None else own.config, own.options or {}, kind.name)
            lacks = kind.missing(index, config)
            if lacks is not None:
                raise lacks
            made = {"encoder": parts.encoder, "matcher": parts.names, "llm": own.llm}
            made["lexical"] = words_leg(kind, config, own.words, parts)
            if "fact_vectors" in kind.collaborators:
                made["fact_vectors"] = parts.fact_vectors()
            taken = {name: made[name] for name in kind.collaborators}
            make: Any = kind
            return _State(parts, kind, make(index, config, threads=own.threads, **taken))
        except HopfuseError as error:
            raise _renamed(error) from error.__cause__

    def _check_given(self, index: Index) -> None:
        """Refuse arguments that the recipe does not read."""
        state, own = self._state, self._settings
        encoder = self._given["encoder"]
        named = encoder is not None and not (isinstance(encoder, str) and encoder == "none")
        if named and not state.recipe.needs.vectors and not self._encodes_more(state):
            raise unread("encoder", state.kind)
        if own.words is not None and own.words != "none" and not state.recipe.needs.words:
            raise unread("words", state.kind)
        if self._given["names"] not in (None, "none") and not state.recipe.needs.entities:
            raise unread("names", state.kind)
        for name, given in (("llm", own.llm), ("fact_vectors", self._given["fact_vectors"])):
            if given is not None and name not in state.kind.collaborators:
                raise unread(name, state.kind)
        if own.reranker is not None and state.kind.ranks != "passages":
            raise unread("reranker", state.kind)

    @staticmethod
    def _encodes_more(state: _State) -> bool:
        """Return whether an encoder encodes anything beside questions: names in them, or facts."""
        index = state.parts.index
        names = state.recipe.needs.entities and index.entity_corpus is not None
        return names or ("fact_vectors" in state.kind.collaborators and index.facts is not None)

    def _like(self, settings: _Settings, parts: Collaborators, live: Any) -> Retriever:
        other = object.__new__(Retriever)
        other._live, other._lock, other._settings, other._given = live, RLock(), settings, self._given
        other._state = other._of(parts)
        return other


def _made(index: Index, recipe: Any, arguments: Mapping[str, Any]) -> Retriever:
    return Retriever(index, recipe, **arguments)


def _reopened(directory: str, recipe: Any, arguments: Mapping[str, Any]) -> Retriever:
    return Retriever.open(directory, recipe, **arguments)


def _fields(config: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a config and options; a config that is a mapping is options, whatever their names."""
    return (None, {**config, **options}) if isinstance(config, Mapping) else (config, options)


def _renamed(error: HopfuseError) -> HopfuseError:
    """Return a recipe's error with the name that its argument has here."""
    field, bracket, rest = (error.field or "").partition("[")
    return error.about(_ARGUMENTS[field] + bracket + rest) if field in _ARGUMENTS else error


def _has_gaps(rows: Any) -> bool:
    return isinstance(rows, list | tuple) and not all(map(_is_there, rows))


def _is_there(one: Any) -> bool:
    """Return whether an input of a question is given; a text without words is not."""
    return one is not None and not (isinstance(one, str) and not one.strip())


def _filled(rows: Any, size: int, make: Callable[[list[int]], Any]) -> Any:
    """Return the rows with what is made for those that are None."""
    gaps = [b for b in range(size) if rows is None or rows[b] is None]
    if not gaps:
        return rows
    made = dict(zip(gaps, make(gaps), strict=True))
    return [made[b] if b in made else rows[b] for b in range(size)]


def _given_rows(name: str, rows: Any, is_read: bool) -> list[tuple[int, InputError]]:
    """Return a note for each question with an input that the recipe does not read."""
    if rows is None or is_read:
        return []
    field = {"vectors": "vector", "entities": "entities"}[name]
    note = InputError("unused", field, "{field} is given, and the recipe reads none over this index; it was not used")
    return [(b, note) for b, one in enumerate(rows) if one is not None]


def _raise_first(notes: Sequence[Sequence[InputError]]) -> None:
    """Raise the first note, with its place among the questions."""
    for b, own in enumerate(notes):
        for note in own:
            field, bracket, rest = str(note.field).partition("[")
            raise note.about(f"{_COLUMNS.get(field, field)}[{b}]{bracket}{rest}")


def _check_inputs(state: _State, text: Any, vector: Any, entities: Any) -> None:
    """Refuse a question that lacks an input and the text to make it from; True stands for what is given."""
    needs, name = state.recipe.needs, state.kind.name
    if _is_there(text):
        return
    lacks_vector, lacks_entities = needs.vectors and vector is None, needs.entities and entities is None
    if text is not None and (needs.texts or lacks_vector or lacks_entities):
        raise InputError(
            "empty",
            "text",
            "{field} is {given!r}, which has no words, and {recipe} reads it; give it words",
            given=text,
            recipe=name,
        )
    if needs.texts:
        raise _lacking("text", f"{name} needs it; give it")
    if lacks_vector:
        raise _lacking("vector", f"so is the text, and {name} needs a vector; give one of them")
    if lacks_entities:
        raise _lacking("entities", f"so is the text, and {name} walks from entities; give one of them")


def _maker_lack(state: _State, vector: Any, entities: Any) -> tuple[str, HopfuseError] | None:
    """Return the input that nothing makes for a question without it, and why; None if there is none."""
    needs, parts, space = state.recipe.needs, state.parts, state.kind.space(state.parts.index)
    if needs.vectors and vector is None:
        if parts.encoder is None:
            assert parts.lack is not None
            return "vector", parts.lack
        if space is not None and parts.encoder.dim != space.dim:
            return "vector", InputError(
                "shape",
                "encoder",
                "{field} makes {given} values, and the vectors of the index have {allowed}; give their encoder",
                given=parts.encoder.dim,
                allowed=space.dim,
            )
    lack = parts.names_lack() if needs.entities and entities is None else None
    return None if lack is None else ("entities", lack)


def _traces_of(traces: list[dict[str, Any]] | None, hits: Hits) -> list[dict[str, Any]] | None:
    """Return traces of these passages alone, in their order."""
    if traces is None:
        return None
    told = []
    for b, trace in enumerate(traces):
        by_row = {hit["passage"]: hit for hit in trace["hits"]}
        told.append({**trace, "hits": [by_row[row] for row, _ in hits.row(b)]})
    return told


def _lacking(field: str, reason: str) -> InputError:
    return InputError("missing", field, "{field} is missing, and {reason}", reason=reason)


def _check_vector(vector: NDArray[Any], state: _State) -> None:
    """Refuse a vector of another dimension, or without a direction where one is needed."""
    space = state.kind.space(state.parts.index)
    assert space is not None
    if vector.shape != (space.dim,):
        raise InputError(
            "shape",
            "vector",
            "{field} has {given} values; the vectors of the index have {allowed}: use the encoder of the index",
            given=vector.size,
            allowed=space.dim,
        )
    if not np.isfinite(vector.astype(np.float32)).all():
        raise InputError("finite", "vector", "{field} is not finite; encode the question again, or leave it out")
    if (space.metric == "cosine" or state.kind.by_cosine) and not vector.any():
        raise InputError(
            "zero",
            "vector",
            "{field} is all zeros and has no direction; encode the question again, or leave it out",
        )


def _check_numbers(entities: Sequence[Any], index: Index) -> None:
    """Refuse the number of an entity that the index does not have."""
    for at, one in enumerate(entities):
        if isinstance(one, int | np.integer) and not 0 <= one < index.num_entities:
            raise InputError(
                "unknown",
                f"entities[{at}]",
                "{field} is {given}, and the index has the entities 0 .. {last}; correct the number, or give the name",
                given=int(one),
                last=index.num_entities - 1,
            )


def _encoder_words(encoder: Any) -> str:
    return f"{encoder.name}, {encoder.dim} dimensions"


def _names_words(matcher: Any) -> str | None:
    if isinstance(matcher, NoNames):
        return None
    return "those of the index" if isinstance(matcher, QuestionMatcher) else repr(matcher)


def _facts_words(state: _State) -> str:
    return "by vectors" if state.parts.fact_vectors() is not None else "by their words"


def _lacks(state: _State) -> dict[str, str]:
    """Return what is missing, and what that costs."""
    index, needs, parts, lacks = state.parts.index, state.recipe.needs, state.parts, dict[str, str]()
    if needs.vectors and parts.encoder is None:
        assert parts.lack is not None
        lacks["an encoder"] = f"a question needs its vector ({parts.lack})"
    if state.kind.space(index) is None and state.kind.ranks == "passages":
        lacks["vectors"] = "passages are found by words and by the graph, not by meaning"
    if index.graph is None and "matcher" in state.kind.collaborators:
        lacks["a graph"] = "passages that answer in several steps are found only if they resemble the question"
    if "lexical" in state.kind.collaborators and not needs.words and state.kind.ranks == "passages":
        lacks["words"] = "a rare word or a number of the question is found only if the vectors show it"
    lack = parts.names_lack() if needs.entities else None
    if lack is not None or (needs.entities and isinstance(parts.names, NoNames)):
        lacks["names"] = "a walk starts only from entities that are given" + ("" if lack is None else f" ({lack})")
    return lacks
