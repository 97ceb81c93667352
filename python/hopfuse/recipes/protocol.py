"""The interface of every recipe: what it needs, how it is configured, how it is searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from ..errors import InputError
from ..index import Index
from .results import SearchResult

AllowScope = Literal["isolated", "results"]


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
    index: Index
    config: Any

    @classmethod
    def missing(cls, index: Index, config: Any = None) -> InputError | None:
        """Return the error that says what the index lacks for this recipe, or None."""
        ...

    @property
    def needs(self) -> Needs:
        """Return the inputs that a search reads."""
        ...

    def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any]] | None = None,
        k: int = 10,
        allow: Any = None,
        allow_scope: AllowScope = "isolated",
        trace: bool = False,
    ) -> SearchResult:
        """Rank the passages for a batch of questions."""
        ...
