"""Changes of a store: the keys of rows that may have changed, and those rows as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: ("passage", id) or ("entity", name).
End = tuple[str, Any]


@dataclass
class Touched:
    """Keys of rows that may have been inserted, updated or deleted.

    Attributes
    ----------
    passages : set of id
    entities : set of name
    edges : set of pairs of ends
        A pair stands for its edges of all types.
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
    """The rows that were touched between two states of a store, as batches of :class:`Snapshot`'s tables.

    ``edges`` and ``facts`` also have the rows of touched passages and entities: deleting these deletes their edges and
    facts, which must then be added again.
    """

    touched: Touched
    passages: Sequence[Any]
    entities: Sequence[Any]
    edges: Sequence[Any]
    facts: Sequence[Any]
