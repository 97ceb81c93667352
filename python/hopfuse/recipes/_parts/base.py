"""Base class of recipes: the search that they share, over an index or over parts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_k, check_threads
from ...encoders import Encoder, as_encoder
from ...errors import InputError
from ...index import Index, IndexPart
from ...types import Corpus
from ..protocol import AllowScope, Needs, Ranks, Words
from ..results import SearchResult
from .config import check_index, make_config
from .filters import View, Views
from .isolated import PassageGroup, collaborators_of, joined
from .lexical import check_leg
from .questions import QuestionBatch, named_as_given, nothing_allowed, read_questions

Result = TypeVar("Result", bound=SearchResult)


class BaseRecipe(Generic[Result]):
    """A recipe over an index, which defines :meth:`_search`.

    Attributes are set once, and copies are constructed from the same arguments: a pickle holds the index (an opened one
    by its path) and the collaborators, but nothing derived.

    Parameters
    ----------
    index : Index
    config : optional
        The recipe's config; by default one with the defaults.
    options : mapping
        Fields of the config; they override those of ``config``.
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else all processors of the process.
    **collaborators
        Those that the class names.
    """

    name: ClassVar[str]
    Config: ClassVar[type[Any]]
    ranks: ClassVar[Ranks] = "passages"
    collaborators: ClassVar[tuple[str, ...]] = ("encoder", "matcher", "lexical")
    by_cosine: ClassVar[bool] = True
    answers: ClassVar[bool] = False
    index: Index
    config: Any
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __init__(
        self, index: Index, config: Any, options: Mapping[str, Any], *, threads: int | None, **collaborators: Any
    ) -> None:
        check_index(index)
        self.index, self.config = index, make_config(self.Config, config, options)
        lacks = self.missing(index, self.config)
        if lacks is not None:
            raise lacks
        self.encoder = _encoder_of(index, collaborators.get("encoder"))
        self.matcher, self.lexical = collaborators.get("matcher"), check_leg(collaborators.get("lexical"))
        self.threads = check_threads(threads)
        self._arguments = (index, self.config), {**collaborators, "threads": threads}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            kind = type(self).__name__
            raise AttributeError(f"{name} of a {kind} cannot be changed: make another {kind}")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.index!r})"

    def __reduce__(self) -> Any:
        return _make, (type(self), *self._arguments)

    @classmethod
    def missing(cls, index: Index, config: Any = None) -> InputError | None:
        """Return the error that says what the index lacks for this recipe, or None."""
        return None

    @classmethod
    def words(cls, config: Any = None) -> Words:
        """Return the lexical leg that the recipe uses by default."""
        return "none"

    @classmethod
    def space(cls, index: Index) -> Corpus | None:
        """Return the vectors that a question's vector is compared with, or None if the index has none."""
        return index.corpus if cls.ranks == "passages" else index.entity_corpus

    @classmethod
    def hit_ids(cls, index: Index) -> Sequence[str | int]:
        """Return the ids of what the recipe ranks, by row."""
        return index.passage_ids if cls.ranks == "passages" else index.entity_names

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        raise NotImplementedError

    @property
    def lacks(self) -> dict[str, str]:
        """Return what this recipe over this index could use and does not have, and what that costs."""
        return {}

    @property
    def reach(self) -> int:
        """The most hits that a search can return."""
        return self.index.num_passages if self.ranks == "passages" else self.index.num_entities

    def search(
        self,
        queries: Sequence[str | None] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any] | None] | None = None,
        k: int = 10,
        allow: Any = None,
        allow_scope: AllowScope = "isolated",
        trace: bool = False,
    ) -> Result:
        """Rank the passages, or for some recipes the entities, for a batch of questions.

        :attr:`needs` says which inputs the recipe reads. An input that it does not read is refused, except for texts.

        Parameters
        ----------
        queries : sequence of B (str or None), optional
            The texts. They are read by a lexical leg, by the encoder for questions without a vector, and by the matcher
            for questions without entities. None stands for a question without a text.
        vectors : array_like of float (B, d), or sequence of B (array_like (d,) or None), optional
            By default, and where None, the encoder's.
        entities : sequence of B (sequence of str, int or Match, or None), optional
            Names as in the questions, entity numbers of the index, or a matcher's results; a question may have none. By
            default, and where None, the matcher's.
        k : int
            Hits per question, at most the number of passages or entities.
        allow : Where, ids of passages, bool (P,) or (B, P), or a sequence of B of these or None, optional
            Passages that a question may find, for all questions or for each: a filter by metadata
            (:func:`hopfuse.where`), the passages' ids, or a mask. Integers are ids, which are the rows if the index was
            built without ids.
        allow_scope : {"isolated", "results"}
            ``"isolated"``: the answer equals, bit for bit, that of an index of the allowed passages alone
            (:meth:`hopfuse.Index.part`), with their entities, edges, facts, frequencies, similarities and word counts.
            The first search of a set of passages builds that index; later ones reuse it (docs/filters.md). It is
            refused if the index does not record which passages state the edges between entities, and for a ``matcher``
            or ``lexical`` without ``part``. Entity numbers that the question may not see are not seeds; the trace lists
            them.
            ``"results"``: everything else is that of the whole index, and only the lists are restricted. Each distinct
            set of passages is then a walk of its own.
        trace : bool
            Adds ``traces``, one per question, which the class of the result describes.

        Returns
        -------
        SearchResult
            Of the recipe's own class, with the ``notes`` of what could not be used.
        """
        return self._answer(self._read(queries, vectors, entities), k, allow, allow_scope, trace)

    def prepare(
        self,
        queries: Sequence[str | None] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any] | None] | None = None,
    ) -> tuple[Any, Any]:
        """Return the vectors and the entities that a search reads, for searches that repeat; None for what it does not.

        The parameters are those of :meth:`search`.
        """
        asked = self._completed(self._read(queries, vectors, entities))
        return asked.vectors, asked.mentions

    def _search(self, asked: QuestionBatch, view: View | None, k: int, trace: bool) -> Result:
        """Return the answers to questions that have all that a search reads.

        ``view``: the passages that each may find, of ``allow_scope="results"``; None for all.
        """
        raise NotImplementedError

    def _read(self, queries: Any, vectors: Any, entities: Any) -> QuestionBatch:
        """Return the questions as they are given; refuse those for which an input is missing."""
        size, name = self.index.num_entities, type(self).__name__
        asked = read_questions(queries, vectors, entities, self.needs, dim=self._dim, num_entities=size, name=name)
        asked.check(self.needs, self.encoder, self.matcher, encoded=self._compares_texts)
        return asked

    def _answer(self, asked: QuestionBatch, k: int, allow: Any, allow_scope: AllowScope, trace: bool) -> Result:
        """Return the answers to questions, those with a filter from a part of the index or from the whole."""
        k = self._k(k)
        view = self._views.read(allow, asked.size, allow_scope)
        if view is None or asked.size == 0:
            return self._found(asked, view, k, trace)
        found = (
            self._found(asked, view, k, trace)
            if allow_scope == "results"
            else self._search_groups(asked, view, k, trace)
        )
        empty = ~np.any(view.passages, axis=1)
        for b in np.flatnonzero(np.asarray(empty)[view.of]).tolist():
            found.notes[b][:] = [nothing_allowed()]
        return found

    def _search_groups(self, asked: QuestionBatch, view: View, k: int, trace: bool) -> Result:
        """Return the answers to questions, each from the part of the index that it may see."""
        if not (self.needs.entities and asked.waits_for_names(encoded=self._compares_texts)):
            asked = self._with_vectors(asked)  # of all parts in one call
        parts = []
        for number, passages in enumerate(view.passages):
            part = self.index.part(passages)
            recipe = part.once(self, self._over)
            group = PassageGroup(np.flatnonzero(view.of == number), part, self.index, asked.size)
            found = recipe._found(group.asked(asked), None, recipe._k(max(1, k)), trace, group.rows)
            parts.append((group, replace(found, index=self.index)))  # which lets go of the part's
        return self._joined(parts, asked.size, k)

    def _found(
        self, asked: QuestionBatch, view: View | None, k: int, trace: bool, rows: NDArray[np.int64] | None = None
    ) -> Result:
        """Return the answers to questions as they are asked; ``rows`` are their numbers in the batch, for errors."""
        try:
            return self._search(self._completed(asked), view, k, trace)
        except InputError as error:
            raise named_as_given(error, rows) from error.__cause__

    def _joined(self, parts: Sequence[tuple[PassageGroup, Result]], batch: int, k: int) -> Result:
        """Return the result of a batch from those of its groups, in the whole index's numbers."""
        return type(parts[0][1])(**joined(parts, self.index, batch, k, self.ranks))

    def _completed(self, asked: QuestionBatch) -> QuestionBatch:
        """Return the questions with the names and vectors that they are asked without."""
        if self.needs.entities:
            asked = asked.with_names(self.matcher, self.index.num_entities)
        return self._with_vectors(asked)

    def _with_vectors(self, asked: QuestionBatch) -> QuestionBatch:
        if not (self.needs.vectors or self._compares_texts):
            return asked
        return asked.with_vectors(self.encoder, self.index, encoded=self._compares_texts)

    @property
    def encodes_all(self) -> bool:
        """Whether a search calls the encoder for the text of a question whose vector is given."""
        return self._compares_texts

    @cached_property
    def _compares_texts(self) -> bool:
        """Return whether more than hits is compared with the encoder's vector of a question, whatever it is given."""
        return False

    def _k(self, k: int) -> int:
        """Return the number of hits per question."""
        return min(check_k(k), self.reach)

    @cached_property
    def _dim(self) -> int | None:
        """The dimension of the vectors that a question's vector is compared with."""
        space = self.space(self.index)
        return None if space is None else space.dim

    @cached_property
    def _views(self) -> Views:
        return Views(self.index)

    def _over(self, part: IndexPart) -> Any:
        """Return this recipe over a part of the index."""
        make: Any = type(self)
        own = collaborators_of(part, self.index, self.ranks, self._arguments[1])
        return make(part.index, self._config_of(part), **own)

    def _config_of(self, part: IndexPart) -> Any:
        return self.config


def _make(kind: type[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return kind(*positional, **named)


def _encoder_of(index: Index, encoder: Any) -> Encoder | None:
    """Return a user's encoder as an Encoder.

    Raises
    ------
    InputError
        The object cannot encode, or the index was built with another encoder.
    """
    if encoder is None:
        return None
    fitted, built = as_encoder(encoder), index.encoder
    if built is not None:
        ours, theirs = ((e.name, e.dim, e.normalize) for e in (fitted, built))
        if ours != theirs:
            raise InputError(
                "conflict",
                "encoder",
                "{field} is {given}, and the index was built with {allowed}: use that one, or build the index with "
                "this one",
                given=_words(*ours),
                allowed=_words(*theirs),
            )
    return fitted


def _words(name: str, dim: int, normalize: bool) -> str:
    return f"{name!r} ({dim} dimensions, {'normalised' if normalize else 'not normalised'})"
