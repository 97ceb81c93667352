"""The passages of each document in their order, as rows of a store come and go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .._validation import is_whole
from ..index import Index

#: The column of metadata that has a passage's position in its document.
POSITION = "position"

Pair = tuple[Any, Any]


class _Place(NamedTuple):
    document: str | int
    position: int | None
    arrival: int

    @property
    def key(self) -> tuple[bool, int, int]:
        return self.position is None, self.position or 0, self.arrival


class NeighbourChange(NamedTuple):
    """Pairs of passages that followed each other and no longer do, and those that do now, by their ids."""

    parted: list[Pair]
    joined: list[Pair]


class DocumentOrder:
    """The passages of each document: by the integers of the column ``position`` of their metadata, then by arrival.

    Unlike in files, positions may be missing or repeated, as they are while rows of a database are renumbered.

    Parameters
    ----------
    index : Index

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.extract.document_order import DocumentOrder
    >>> places = [("a", {"position": 1}), ("b", {"position": 3})]
    >>> rows = [{"id": id, "text": id, "document": "d", "metadata": place} for id, place in places]
    >>> order = DocumentOrder(hf.Index.build(rows))
    >>> order.change([], [{"id": "c", "document": "d", "metadata": {"position": 2}}])
    NeighbourChange(parted=[('a', 'b')], joined=[('a', 'c'), ('c', 'b')])
    """

    def __init__(self, index: Index) -> None:
        self._places: dict[Any, _Place] = {}
        self._of: dict[str | int, set[Any]] = {}
        self._arrivals = 0
        column = index.metadata.get(POSITION)
        integers = column is not None and column.type == "int64"
        positions: Iterable[Any] = column if column is not None and integers else (None for _ in index.passage_ids)
        for id, document, position in zip(index.passage_ids, index.documents, positions, strict=True):
            self._put(id, document, position)

    def positions(self, ids: Iterable[Any]) -> list[int | None]:
        """Return the place of each passage in its document, from 0; None for a passage without one."""
        at = {id: place for document in self._of for place, id in enumerate(self._ordered(document))}
        return [at.get(id) for id in ids]

    def change(self, gone: Collection[Any], rows: Sequence[Mapping[str, Any]]) -> NeighbourChange:
        """Take passages out and put others in; return which neighbours change.

        Parameters
        ----------
        gone : collection of id
            Passages that are deleted.
        rows : sequence of mappings
            Passages that are added or replaced: ``id``, ``document`` and ``metadata``. Their edges are new.
        """
        fresh = {row["id"] for row in rows}
        moved = {*gone, *fresh}
        near = {place.document for id in moved if (place := self._places.get(id)) is not None}
        near |= {row["document"] for row in rows if row.get("document") is not None}
        before = self._pairs(near)
        for id in moved:
            self._take(id)
        for row in rows:
            self._put(row["id"], row.get("document"), (row.get("metadata") or {}).get(POSITION))
        after = self._pairs(near)
        parted = [pair for pair in before if pair not in after and moved.isdisjoint(pair)]
        return NeighbourChange(parted, [pair for pair in after if pair not in before or not moved.isdisjoint(pair)])

    def _pairs(self, documents: Iterable[str | int]) -> dict[Pair, None]:
        return dict.fromkeys(pair for document in documents for pair in pairwise(self._ordered(document)))

    def _ordered(self, document: str | int) -> list[Any]:
        return sorted(self._of.get(document, ()), key=lambda id: self._places[id].key)

    def _put(self, id: Any, document: str | int | None, position: Any) -> None:
        if document is None:
            return
        self._places[id] = _Place(document, int(position) if is_whole(position) else None, self._arrivals)
        self._of.setdefault(document, set()).add(id)
        self._arrivals += 1

    def _take(self, id: Any) -> None:
        place = self._places.pop(id, None)
        if place is not None:
            self._of[place.document].discard(id)
