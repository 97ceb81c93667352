"""Record batches from ADBC as those of a table: pgvector's binary vectors become lists of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...io.arrow import arrow
from .. import tables

#: Dtypes of components in pgvector's binary format, which is uint16 dim, uint16 0, dim components, all big-endian.
VECTORS: dict[str, np.dtype[Any]] = {"vector": np.dtype(">f4"), "halfvec": np.dtype(">f2")}
_HEADER = 4


def batch_reader(table: str, schema: Any, dims: Mapping[str, int]) -> Callable[[Any], Any]:
    """Return a function from batches of a query to batches of a table; ``dims`` are the dimensions of typed vectors.

    Raises
    ------
    InputError
        A column has a type that an index cannot hold. The function refuses columns that the table does not have.
    """
    _check_types(table, schema)

    def read(batch: Any) -> Any:
        columns = [
            vector_column(column, dims[name]) if _is_pgvector(column.type) else plain(column)
            for name, column in zip(schema.names, batch.columns, strict=True)
        ]
        return tables.as_table(table, arrow().record_batch(columns, names=schema.names), {})

    return read


def _check_types(table: str, schema: Any) -> None:
    for field in schema:
        name, kind = field.name, type_name(field.type)
        if kind == "sparsevec":
            raise InputError(
                "type",
                table,
                "{field} gives {column!r}, a sparsevec; vectors must be dense: SELECT {column}::vector AS {column}",
                column=name,
            )
        if kind is not None and kind not in VECTORS:
            raise InputError(
                "type",
                table,
                "{field} gives {column!r} of the type {given}, which an index cannot hold; cast it, such as "
                "{column}::text or {column}::float8, or leave it out",
                column=name,
                given=kind,
            )


def _is_pgvector(kind: Any) -> bool:
    return type_name(kind) in VECTORS


def type_name(kind: Any) -> str | None:
    """Return the name of a type that an index holds as a vector or not at all; None for any other."""
    pa = arrow()
    if isinstance(kind, pa.OpaqueType):
        return str(kind.type_name)
    temporal = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind)
    other = pa.types.is_binary(kind) or pa.types.is_decimal(kind) or pa.types.is_interval(kind)
    return str(kind) if temporal or other else None


def plain(column: Any) -> Any:
    """Return a column without Arrow's extension type; that of JSON becomes strings."""
    pa = arrow()
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column


def vector_column(column: Any, dim: int) -> Any:
    """Return pgvector's vectors as lists of float32 or float16, without a Python object for each row.

    ``dim`` is the dimension of a column without rows, if above 0.

    Raises
    ------
    InputError
        The bytes are not in pgvector's format.
    """
    pa = arrow()
    name = column.type.type_name
    wire: np.dtype[Any] = VECTORS[name]
    bytes_of = column.storage
    numbers = wire.newbyteorder("=")
    arrow_type = pa.float32() if name == "vector" else pa.float16()
    if not len(column):
        return pa.array([], pa.list_(arrow_type, dim) if dim > 0 else pa.list_(arrow_type))
    offsets = np.frombuffer(bytes_of.buffers()[1], np.int32)[bytes_of.offset : bytes_of.offset + len(column) + 1]
    data = np.frombuffer(bytes_of.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets).astype(np.int64)
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
        raise InputError(
            "version", None, "a vector of PostgreSQL is not in pgvector's binary format; update pgvector or hopfuse"
        )
