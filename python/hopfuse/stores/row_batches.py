"""Record batches from rows of a graph, with one type for each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import InputError
from ..io.arrow import arrow, empty_batch
from .tables import ROWS

#: A row of a table, by column.
Row = dict[str, Any]


def row_batches(table: str, rows: Iterable[Row]) -> Iterator[Any]:
    """Yield rows as record batches; rows with other columns go to separate batches.

    Raises
    ------
    InputError
        A value has another type than those before it, or only some rows have vectors.
    """
    waiting: dict[tuple[str, ...], list[Row]] = {}
    batches = _Batches(table)
    for row in rows:
        group = waiting.setdefault(tuple(row), [])
        group.append(row)
        if len(group) == ROWS:
            yield batches.make(group)
            group.clear()
    yield from (batches.make(group) for group in waiting.values() if group)
    if not batches.num_rows:
        pa = arrow()
        names = {"passages": ("id", "text"), "entities": ("name",), "edges": ("src_passage", "dst_entity")}[table]
        yield empty_batch(pa.schema([(name, pa.string()) for name in names]))


class _Batches:
    """Makes the record batches of one table, all with the same types."""

    def __init__(self, table: str) -> None:
        self._table, self.num_rows = table, 0
        self._has_vectors: bool | None = None
        self._id_kind: Any = None

    def make(self, rows: Sequence[Row]) -> Any:
        """Return rows as a record batch."""
        names = list(rows[0])
        if "vector" in names:
            given = [row["vector"] is not None for row in rows]
            self._has_vectors = any(given) if self._has_vectors is None else self._has_vectors
            if not self._has_vectors:
                if any(given):
                    raise InputError(
                        "missing",
                        self._table,
                        "{field} row {row} has a vector and the rows before it have none; give all rows one",
                        row=self.num_rows + given.index(True),
                    )
                names.remove("vector")
        made = arrow().record_batch([self._column(name, [row[name] for row in rows]) for name in names], names=names)
        self.num_rows += len(rows)
        return made

    def _column(self, name: str, values: Sequence[Any]) -> Any:
        kind = self._kind(name, values[0])
        errors = (arrow().ArrowException, TypeError, ValueError, OverflowError)
        try:
            return arrow().array(values, kind)
        except errors:
            for row, value in enumerate(values, self.num_rows):
                try:
                    arrow().array([value], kind)
                except errors:
                    raise InputError(
                        "type",
                        self._table,
                        "{field} row {row} has {property} = {given!r}, and the rows before it have the type {allowed}; "
                        "give all values of a property one type",
                        row=row,
                        property=name,
                        given=str(value)[:80],
                        allowed=kind,
                    ) from None
            raise

    def _kind(self, name: str, first: Any) -> Any:
        pa = arrow()
        if name in ("id", "src_passage", "dst_passage"):
            self._id_kind = self._id_kind or (pa.int64() if type(first) is int else pa.string())
            return self._id_kind
        return {"vector": pa.list_(pa.float32()), "weight": pa.float64()}.get(name, pa.string())
