"""Read Arrow columns as lists and arrays. pyarrow is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, MissingExtraError


def arrow(purpose: str = "reading a store") -> Any:
    """Return pyarrow.

    Raises
    ------
    MissingExtraError
        It is not installed; the message names the purpose.
    """
    try:
        import_module("pyarrow.compute")
        return import_module("pyarrow")
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose) from None


def unreadable() -> tuple[type[Exception], ...]:
    """Return what pyarrow raises at a file or stream that is damaged, or has a type that it does not read."""
    return (arrow().ArrowException, ArithmeticError, ValueError, OSError)


def empty_batch(schema: Any) -> Any:
    """Return a record batch without rows, which states the columns of an empty table."""
    return arrow().RecordBatch.from_pylist([], schema=schema)


def arrow_values(column: Any, name: str, what: str) -> list[Any] | NDArray[Any]:
    """Return the values of a column of a table: an array of numbers if none is missing, else a list.

    Raises
    ------
    InputError
        Strings that are not UTF-8, or other damage.
    """
    pa = arrow("reading an Arrow table")
    try:
        column.validate(full=True)
    except unreadable() as error:
        raise InputError("syntax", name, "the column {column!r} is not valid: {error}", column=name, error=error).at(
            what
        ) from None
    if (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)) and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    found: list[Any] = column.to_pylist()
    return [row if row is None else dict(row) for row in found] if pa.types.is_map(column.type) else found


def component_counts(column: Any) -> NDArray[np.int64] | None:
    """Return the number of components of each row, 0 of a null; None if the column is not of lists of floats."""
    pa = arrow()
    types = pa.types
    listed = types.is_fixed_size_list(column.type) or types.is_list(column.type) or types.is_large_list(column.type)
    if not listed or not types.is_floating(column.type.value_type):
        return None
    return np.asarray(pa.compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def first_null(column: Any) -> int | None:
    """Return the row of the first null, or None if there is none."""
    return int(np.flatnonzero(np.asarray(column.is_null()))[0]) if column.null_count else None


def field_types(column: Any) -> dict[str, str]:
    """Return the types of metadata that the fields of a struct have, where Arrow's type has one."""
    if column is None or isinstance(column, list | np.ndarray):
        return {}
    types = arrow().types
    checks: dict[str, Callable[[Any], bool]] = {
        "bool": types.is_boolean,
        "int64": types.is_integer,
        "float64": types.is_floating,
        "string": lambda kind: types.is_string(kind) or types.is_large_string(kind),
        "timestamp": types.is_timestamp,
        "strings": lambda kind: types.is_list(kind) and types.is_string(kind.value_type),
    }
    fields = column.type if types.is_struct(column.type) else ()
    return {one.name: name for one in fields for name, check in checks.items() if check(one.type)}
