"""Read tables from .jsonl, .tsv and .parquet files, Arrow tables, or mappings."""

from __future__ import annotations

import importlib
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_suffix, wrong_type
from ..errors import InputError, MissingExtraError
from .files import existing_file
from .json_lines import numbered_lines, parse_line
from .parquet import open_parquet, read_groups
from .qrels import wrong_fields
from .tables import Spec, Table, check_columns, from_rows, make_table
from .tsv import tsv_records


def read_table(source: Any, spec: Spec) -> Table:
    """Read a table from a path (.jsonl, .tsv, .parquet), an Arrow table, or mappings, one per row; or return a Table.

    Raises
    ------
    InputError
        The source is of another kind, or a row is malformed; the message names the file and the line.
    MissingExtraError
        An Arrow table or a Parquet file is given and pyarrow is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        return _read_path(Path(source), spec)
    if isinstance(source, Table):
        return source
    if hasattr(source, "__arrow_c_stream__"):
        return read_arrow(source, spec)
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes, np.ndarray)):
        return from_rows(source, spec, lambda i: f"{spec.what}[{i}]")
    columns = ", ".join(map(repr, spec.required))
    raise wrong_type(
        source, spec.what, f"a path ({', '.join(_READERS)}), an Arrow table, or a list of mappings with {columns}"
    )


def _read_path(path: Path, spec: Spec) -> Table:
    read = _READERS[check_suffix(path, spec.what, *_READERS)]
    return read(existing_file(path, spec.what), spec)


def read_jsonl(path: Path, spec: Spec) -> Table:
    """Read JSON objects, one per line that is not blank."""
    numbers = array("q")

    def rows() -> Iterator[Any]:
        for number, line in numbered_lines(path, InputError):
            if line.strip():
                numbers.append(number)
                yield parse_line(line, f"{path}, line {number}", InputError)

    return from_rows(rows(), spec, lambda i: f"{path}, line {numbers[i]}")


def read_tsv(path: Path, spec: Spec) -> Table:
    """Read tab-separated fields, with a header or in positional order."""
    records = tsv_records(numbered_lines(path, InputError))
    first = next(records, None)
    header = first is not None and _is_header(first[1], spec, f"{path}, line {first[0]}")
    names = first[1] if first is not None and header else None
    columns: dict[str, list[Any]] = {name: [] for name in spec.known}
    numbers = array("q")
    for number, fields in chain([] if header or first is None else [first], records):
        where = f"{path}, line {number}"
        if names is None:
            names = _positions(len(fields), spec, where)
        if len(fields) != len(names):
            raise wrong_fields(fields, ", ".join(names), where).about(kind=InputError)
        row = dict(zip(names, fields, strict=True))
        for name in spec.known:
            columns[name].append(row.get(name))
        numbers.append(number)
    return make_table(
        spec, dict(columns), len(numbers), lambda i: f"{path}, line {numbers[i]}", names or (), textual=True
    )


def _is_header(fields: Sequence[str], spec: Spec, where: str) -> bool:
    """Return whether the first line is a header, which contains the name of a known column."""
    if not {field.strip().casefold() for field in fields} & set(spec.known):
        return False
    check_columns(fields, where, spec.required, spec.known, others=spec.others)
    return True


def _positions(width: int, spec: Spec, where: str) -> list[str]:
    names = list(spec.positional[:width])
    if width > len(spec.positional) or not set(spec.required) <= set(names):
        raise InputError(
            "syntax",
            None,
            "the line has {given} fields and is not a header; without a header the columns are {allowed}: add one that "
            "names {required}",
            given=width,
            allowed=", ".join(spec.positional),
            required=", ".join(spec.required),
        ).at(where)
    return names


def read_arrow(source: Any, spec: Spec) -> Table:
    """Read an object with the Arrow C stream interface."""
    arrow = _load("pyarrow", f"reading {spec.what} from an Arrow table")
    return _from_arrow(arrow.table(source), spec, lambda i: f"{spec.what} row {i}")


def read_parquet(path: Path, spec: Spec) -> Table:
    """Read the known columns of a Parquet file, a row group at a time.

    Raises
    ------
    InputError
        A row group is larger than :data:`hopfuse.io.parquet.MOST_GROUP_BYTES`.
    """
    file = open_parquet(path, f"reading {spec.what} from a Parquet file")
    names = file.schema_arrow.names
    check_columns(names, spec.what, spec.required, spec.known, others=spec.others)
    kept = [name for name in names if name in spec.known]
    groups = [{name: _arrow_values(table.column(name)) for name in kept} for table in read_groups(file, path, kept)]
    columns = {name: _joined([group[name] for group in groups]) for name in kept}
    return make_table(spec, columns, int(file.metadata.num_rows), lambda i: f"{path}, row {i}", names)


def _from_arrow(arrow_table: Any, spec: Spec, where: Callable[[int], str]) -> Table:
    names = list(arrow_table.column_names)
    check_columns(names, spec.what, spec.required, spec.known, others=spec.others)
    columns = {name: _arrow_values(arrow_table.column(name)) for name in names if name in spec.known}
    return make_table(spec, columns, int(arrow_table.num_rows), where, names)


def _arrow_values(column: Any) -> Any:
    types = _load("pyarrow", "reading an Arrow table").types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy() if number and column.null_count == 0 else column.to_pylist()


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate a column's values from several row groups."""
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]


def _load(module: str, purpose: str) -> Any:
    """Import a module of pyarrow; raise MissingExtraError if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose) from None


_READERS = {".jsonl": read_jsonl, ".tsv": read_tsv, ".parquet": read_parquet}
