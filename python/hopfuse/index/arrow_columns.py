"""Read and check columns of Arrow record batches; errors name the table, the row and the column."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, MissingExtraError
from ..io.tables import check_columns, refuse_value


def arrow() -> Any:
    """Return pyarrow.

    Raises
    ------
    MissingExtraError
    """
    try:
        import_module("pyarrow.compute")
        return import_module("pyarrow")
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", "reading a store") from None


def empty_batch(schema: Any) -> Any:
    """Return a record batch without rows, which states the columns of an empty table."""
    return arrow().RecordBatch.from_pylist([], schema=schema)


class Rows:
    """A record batch of a table, and the number of its first row in the table."""

    def __init__(self, batch: Any, what: str, first: int) -> None:
        self.batch, self.what, self.first = batch, what, first
        self.names: list[str] = list(batch.schema.names)

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def check_names(self, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
        """Refuse missing, repeated and unknown columns."""
        check_columns(self.names, self.what, required, required + optional, others=False)

    def column(self, name: str) -> Any:
        """Return a column."""
        return self.batch.column(self.names.index(name))

    def where(self, row: int) -> str:
        """Describe a row by its number and, if it has one, its id or name."""
        place = f"{self.what} row {self.first + row}"
        for name in ("id", "name"):
            if name in self.names and (key := self.column(name)[row].as_py()) is not None:
                return f"{place} ({name} {key!r})"
        return place

    def label(self, name: str) -> str:
        """Return the name of a column in its source."""
        known = (self.batch.schema.field(self.names.index(name)).metadata or {}).get(b"column", name.encode())
        return str(known.decode())

    def refuse(self, row: int, name: str, value: Any, allowed: str, code: str = "type") -> NoReturn:
        """Raise an InputError for a value."""
        refuse_value(self.where(row), self.label(name) if name in self.names else name, value, allowed, code)

    def strings(self, name: str, *, default: str | None = None) -> Any:
        """Return a column as large strings; nulls are replaced by ``default``, or refused without one."""
        pa, column = arrow(), self.column(name)
        types = pa.types
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if types.is_null(kind):
            column = column.cast(pa.large_string())
        elif not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
            self._refuse_type(name, "strings")
        column = column.cast(pa.large_string())
        if column.null_count:
            if default is None:
                self.refuse(first_null(column), name, None, "a string")
            column = pa.compute.fill_null(column, default)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                "syntax", name, "the column {column!r} is not valid: {error}", column=name, error=error
            ).at(self.what) from None
        return column

    def keys(self, name: str) -> Any:
        """Return a column of strings or integers as large strings or int64; nulls are kept."""
        pa, column = arrow(), self.column(name)
        if pa.types.is_integer(column.type):
            try:
                return column.cast(pa.int64())
            except pa.ArrowInvalid:
                raise InputError(
                    "range", name, "the column {column!r} has integers of more than 64 bits", column=name
                ).at(self.what) from None
        if not pa.types.is_null(column.type):
            kept = Rows(pa.record_batch([pa.compute.drop_null(column)], names=[name]), self.what, self.first)
            kept.strings(name)  # refuses other types
        return column.cast(pa.large_string())

    def vectors(self, name: str, dim: int | None) -> NDArray[Any]:
        """Return a column of lists of numbers as an array (n, d); if ``dim`` is None, d is that of the first row."""
        pa, column = arrow(), self.column(name)
        types = pa.types
        listed = (types.is_fixed_size_list, types.is_list, types.is_large_list)
        if not any(is_kind(column.type) for is_kind in listed) or not types.is_floating(column.type.value_type):
            self._refuse_type(name, "lists of floating-point numbers")
        if column.null_count:
            self.refuse(first_null(column), name, None, "a vector: leave the row out, or give it one")
        if dim is None and types.is_fixed_size_list(column.type):
            dim = int(column.type.list_size)
        lengths = np.asarray(pa.compute.list_value_length(column).to_numpy(zero_copy_only=False), np.int64)
        dim = int(lengths[0]) if dim is None and lengths.size else dim
        wrong = np.flatnonzero(lengths != dim)
        if wrong.size:
            row = int(wrong[0])
            raise InputError(
                "shape",
                self.label(name),
                "{column!r} has {given} components, and the rows before it {allowed}; all vectors must have the same "
                "dimension",
                column=self.label(name),
                given=int(lengths[row]),
                allowed=dim,
            ).at(self.where(row))
        if dim == 0:
            raise InputError(
                "shape",
                self.label(name),
                "{column!r} has no components; a vector must have at least one",
                column=self.label(name),
            ).at(self.where(0))
        values = column.flatten()
        if values.null_count:
            self.refuse(first_null(values) // (dim or 1), name, "a list with a null", "a list of numbers")
        return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(self), dim or 0)

    def _refuse_type(self, name: str, allowed: str) -> NoReturn:
        raise InputError(
            "type",
            self.label(name),
            "the column {column!r} has the Arrow type {given}; it must hold {allowed}",
            column=self.label(name),
            given=self.column(name).type,
            allowed=allowed,
        ).at(self.what)


def first_null(column: Any) -> int:
    """Return the row of the first null."""
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])


def string_parts(column: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the lengths and the bytes of large strings without nulls."""
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return np.diff(ends), whole[ends[0] : ends[-1]]


def own_copy(column: Any) -> Any:
    """Return a copy of a column; a slice, or a column from the C interface, would keep its whole batch in memory."""
    return column.take(arrow().array(np.arange(len(column))))


def joined(columns: list[Any]) -> Any:
    """Concatenate columns of one type."""
    return arrow().chunked_array(columns).combine_chunks()


def first_repeated(column: Any) -> tuple[int, int] | None:
    """Return the first row that repeats a value and the row of its first occurrence; None if all are distinct."""
    codes = np.asarray(column.dictionary_encode().indices.to_numpy(zero_copy_only=False))
    repeated = np.flatnonzero(codes != np.arange(codes.size))
    return (int(repeated[0]), int(codes[repeated[0]])) if repeated.size else None
