"""What changed in a store: which rows to read again, and those rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: ("passage", id) or ("entity", name).
End = tuple[str, Any]


@dataclass
class Touched:
    """Rows by their keys that may have changed, have come or have gone.

    Attributes
    ----------
    passages : set of id
    entities : set of name
    edges : set of pairs of ends
        Whatever joins the two, by any type, is as the store has it now.
    facts : set of (head, relation, tail)
    """

    passages: set[Any] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    edges: set[tuple[End, End]] = field(default_factory=set)
    facts: set[tuple[str, str, str]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.passages or self.entities or self.edges or self.facts)


@dataclass(frozen=True)
class Changes:
    """The rows of one state of a store that were touched since another, as batches of :class:`Snapshot`'s tables.

    ``edges`` and ``facts`` have also the rows of passages and entities that were touched: they go with those, and
    come back.
    """

    touched: Touched
    passages: Sequence[Any]
    entities: Sequence[Any]
    edges: Sequence[Any]
    facts: Sequence[Any]
