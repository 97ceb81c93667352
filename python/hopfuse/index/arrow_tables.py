"""Tables from Arrow and Parquet, by way of pyarrow, which is imported here and only when needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError
from .tables import Spec, Table, make_table, refuse_unknown


def read_arrow(source: Any, spec: Spec) -> Table:
    """A table of an object that speaks the Arrow stream interface."""
    arrow = _load("pyarrow", f"reading {spec.what} from an Arrow table")
    return _from_arrow(arrow.table(source), spec, lambda i: f"{spec.what} row {i}")


def read_parquet(path: Path, spec: Spec) -> Table:
    """A table of a Parquet file; columns that are not kept are not read."""
    parquet = _load("pyarrow.parquet", f"reading {spec.what} from a Parquet file")
    try:
        file = parquet.ParquetFile(path)
        names = [name for name in file.schema_arrow.names if name in spec.known or not spec.others]
        arrow_table = file.read(columns=names)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    return _from_arrow(arrow_table, spec, lambda i: f"{path}, row {i}")


def _from_arrow(arrow_table: Any, spec: Spec, where: Callable[[int], str]) -> Table:
    names = list(arrow_table.column_names)
    missing = [name for name in spec.required if names.count(name) != 1]
    if missing:
        raise InputError(f"{spec.what} has the columns {names}; it must have {missing[0]!r} once")
    if not spec.others and not set(names) <= set(spec.known):
        refuse_unknown(names, spec, spec.what)
    columns = {name: _arrow_values(arrow_table.column(name)) for name in names if name in spec.known}
    return make_table(spec, columns, int(arrow_table.num_rows), where)


def _arrow_values(column: Any) -> Any:
    types = _load("pyarrow", "reading an Arrow table").types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy() if number and column.null_count == 0 else column.to_pylist()


def _load(module: str, purpose: str) -> Any:
    """pyarrow, or the error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose) from None
