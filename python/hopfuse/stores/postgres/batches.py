"""Record batches as ADBC gives a query's rows, as a source gives them: vectors are numbers, other columns metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...index.arrow_columns import arrow
from ..tables import COLUMNS, REQUIRED

#: Bytes of a component in pgvector's binary format, and its dtype there: uint16 dim, uint16 0, dim components.
VECTORS: dict[str, np.dtype[Any]] = {"vector": np.dtype(">f4"), "halfvec": np.dtype(">f2")}
_HEADER = 4


def batch_reader(table: str, schema: Any, dims: Mapping[str, int]) -> Callable[[Any], Any]:
    """Return what turns the batches of a query into batches of a table; ``dims`` are vectors' components, if known.

    Raises
    ------
    InputError
        Columns that the table does not take.
    """
    names = list(schema.names)
    vectors = [field.name for field in schema if is_vector(field.type)]
    _check(table, names, vectors, schema)
    known = [name for name in names if name in COLUMNS[table]]
    others = [name for name in names if name not in known and name not in vectors]

    def read(batch: Any) -> Any:
        pa = arrow()
        columns = {name: (plain(batch.column(names.index(name))), name) for name in known}
        if vectors:
            columns["vector"] = (vector_column(batch.column(names.index(vectors[0])), dims[vectors[0]]), vectors[0])
        if others:
            parts = [plain(batch.column(names.index(name))) for name in others]
            columns["metadata"] = (pa.StructArray.from_arrays(parts, others), "metadata")
        fields = [pa.field(name, column.type, metadata={"column": own}) for name, (column, own) in columns.items()]
        return pa.record_batch([column for column, _ in columns.values()], schema=pa.schema(fields))

    return read


def _check(table: str, names: list[str], vectors: list[str], schema: Any) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--{table} gives the column {twice!r} twice; name each column once, with AS")
    missing = [name for name in REQUIRED[table] if name not in names]
    if missing:
        raise InputError(
            f"--{table} gives the columns {', '.join(names)}; {missing[0]!r} is missing: SELECT ... AS {missing[0]}"
        )
    for name in names:
        kind = type_name(schema.field(name).type)
        if kind == "sparsevec":
            raise InputError(
                f"--{table} gives {name!r}, a sparsevec; vectors are dense: SELECT {name}::vector AS {name}"
            )
        if kind is not None and name not in vectors:
            raise InputError(
                f"--{table} gives {name!r} of the type {kind}, which has no place in an index: cast it, such as "
                f"{name}::text or {name}::float8, or leave it out"
            )
    takes = {"passages": True, "entities": True}.get(table, False)
    if len(vectors) > takes:
        raise InputError(f"--{table} gives the vectors {', '.join(vectors)}; {'one is' if takes else 'none are'} taken")
    others = [name for name in names if name not in COLUMNS[table] and name not in vectors]
    if others and table != "passages":
        raise InputError(f"--{table} gives the column {others[0]!r}; allowed: {', '.join(COLUMNS[table])}")
    if others and "metadata" in names:
        raise InputError(
            f"--passages gives metadata, and {others[0]!r}, which would be a column of it; leave one of them out"
        )


def is_vector(kind: Any) -> bool:
    """Return whether a type is pgvector's, or an array of floating-point numbers."""
    pa = arrow()
    if pa.types.is_list(kind):
        return bool(pa.types.is_floating(kind.value_type))
    return type_name(kind) in VECTORS


def type_name(kind: Any) -> str | None:
    """Return PostgreSQL's name of a type that Arrow has no type for; None where it has."""
    pa = arrow()
    if isinstance(kind, pa.OpaqueType):
        return str(kind.type_name)
    plain_types = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind)
    binary = pa.types.is_binary(kind) or pa.types.is_decimal(kind) or pa.types.is_interval(kind)
    return str(kind) if plain_types or binary else None


def plain(column: Any) -> Any:
    """Return a column without Arrow's extension types: JSON as strings."""
    pa = arrow()
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column


def vector_column(column: Any, dim: int) -> Any:
    """Return vectors as lists of float32 or float16, without an object for each; no rows have ``dim``, above 0.

    Raises
    ------
    InputError
        Bytes that are not pgvector's.
    """
    pa = arrow()
    if not isinstance(column.type, pa.OpaqueType):
        return column
    name = column.type.type_name
    wire: np.dtype[Any] = VECTORS[name]
    bytes_of = column.storage
    numbers = wire.newbyteorder("=")
    arrow_type = pa.float32() if name == "vector" else pa.float16()
    offsets = np.frombuffer(bytes_of.buffers()[1], np.int32)[bytes_of.offset : bytes_of.offset + len(column) + 1]
    data = np.frombuffer(bytes_of.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]] if len(column) else None
    lengths = np.diff(offsets).astype(np.int64)
    if data is None or not lengths.size:
        return pa.array([], pa.list_(arrow_type, dim) if dim > 0 else pa.list_(arrow_type))
    width = int(lengths[0])
    if column.null_count == 0 and (lengths == width).all() and width > _HEADER:
        rows = data.reshape(-1, width)
        _check_headers(rows[:, :_HEADER], (width - _HEADER) // wire.itemsize)
        values = np.ascontiguousarray(rows[:, _HEADER:]).view(wire).astype(numbers)
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1), arrow_type), values.shape[1])
    starts = (offsets[:-1] - offsets[0]).tolist()
    rows_of: list[NDArray[Any] | None] = [
        None if null else data[start + _HEADER : start + length].view(wire).astype(numbers)
        for start, length, null in zip(starts, lengths.tolist(), bytes_of.is_null().to_pylist(), strict=True)
    ]
    return pa.array(rows_of, pa.list_(arrow_type))


def _check_headers(headers: NDArray[np.uint8], dim: int) -> None:
    said = np.ascontiguousarray(headers).view(">u2")
    if not ((said[:, 0] == dim) & (said[:, 1] == 0)).all():
        raise InputError("a vector of PostgreSQL is not in pgvector's binary format; update pgvector, or hopfuse")
