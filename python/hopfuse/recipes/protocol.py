"""The interface of every recipe: what it needs, how it is configured, how it is searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from ..errors import InputError
from ..index import Index
from ..types import Corpus
from .results import SearchResult

AllowScope = Literal["isolated", "results"]
Ranks = Literal["passages", "entities"]
Words = Literal["none", "stored", "any"]


class Needs(NamedTuple):
    """Inputs that a configured recipe reads.

    Attributes
    ----------
    vectors : bool
        A vector of each question, given or made by the encoder.
    texts : bool
        The text of each question, even if its vector and its entities are given.
    entities : bool
        The names in each question, given or found by the matcher.
    facts : bool
        The facts of the index.
    words : bool
        A lexical leg, which reads the texts of the questions. If ``texts`` is False, a question without one is searched
        without words.
    """

    vectors: bool = False
    texts: bool = False
    entities: bool = False
    facts: bool = False
    words: bool = False


class Recipe(Protocol):
    """A retrieval system over an index, as the command line, the benchmarks and the server use it.

    The constructor is ``Recipe(index, config, encoder=..., matcher=..., lexical=..., threads=...)``. Fields of the
    config may be passed as keyword arguments instead.

    Examples
    --------
    >>> from hopfuse.recipes import RECIPES, Recipe
    >>> recipe: type[Recipe] = RECIPES["phase-graph"]
    >>> recipe.__name__
    'PhaseGraph'
    """

    name: ClassVar[str]
    """The name on the command line, such as ``"phase-graph"``."""
    Config: ClassVar[type]
    """The frozen dataclass of the options, which validates itself."""
    ranks: ClassVar[Ranks]
    """The kind of its hits: rows of passages, or numbers of entities."""
    collaborators: ClassVar[tuple[str, ...]]
    """Keyword arguments of its constructor beside ``config`` and ``threads``: among ``encoder``, ``matcher``,
    ``lexical``, ``fact_vectors`` and ``llm``."""
    by_cosine: ClassVar[bool]
    """True if a question's vector needs a direction whatever the metric of the index: it may not be all zeros."""
    answers: ClassVar[bool]
    """True if it has ``answer(queries, found)``, which asks a language model."""
    index: Index
    config: Any

    @classmethod
    def missing(cls, index: Index, config: Any = None) -> InputError | None:
        """Return the error that says what the index lacks for this recipe, or None."""
        ...

    @classmethod
    def words(cls, config: Any = None) -> Words:
        """Return the lexical leg that it uses by default: none, that of the index if it has one, or any.

        ``"any"`` is the index's own, else one over the texts of what the recipe ranks.
        """
        ...

    @classmethod
    def space(cls, index: Index) -> Corpus | None:
        """Return the vectors that a question's vector is compared with, or None if the index has none."""
        ...

    @classmethod
    def hit_ids(cls, index: Index) -> Sequence[str | int]:
        """Return the ids of what it ranks, by row: ids of passages, or names of entities."""
        ...

    @property
    def needs(self) -> Needs:
        """Return the inputs that a search reads."""
        ...

    @property
    def reach(self) -> int:
        """The most hits that a search can return."""
        ...

    def prepare(
        self,
        queries: Sequence[str | None] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any] | None] | None = None,
    ) -> tuple[Any, Any]:
        """Return the vectors and the entities that a search reads, None for what it does not read."""
        ...

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
    ) -> SearchResult:
        """Rank the passages, or the entities, for a batch of questions.

        A row that is None is made by the encoder or the matcher. ``notes`` of the result say what could not be used.
        """
        ...
