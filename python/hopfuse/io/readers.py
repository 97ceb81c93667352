"""Read tables from .jsonl, .tsv and .parquet files, Arrow tables, or mappings."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError
from .files import existing_file
from .json_lines import numbered_lines, parse_json
from .parquet import open_parquet, read_groups
from .tables import Spec, Table, from_rows, make_table, refuse_unknown


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
    raise InputError(
        "choice",
        None,
        "{what} is a {kind}; allowed: a path ({names}), an Arrow table, or a list of mappings with {names_2}",
        what=spec.what,
        kind=type(source).__name__,
        names=", ".join(_READERS),
        names_2=", ".join(map(repr, spec.required)),
    )


def _read_path(path: Path, spec: Spec) -> Table:
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(
            "type",
            None,
            "{what} is the path {path!r}; its suffix must be one of {names}: convert it",
            what=spec.what,
            path=str(path),
            names=", ".join(_READERS),
        )
    return read(existing_file(path, spec.what), spec)


def read_jsonl(path: Path, spec: Spec) -> Table:
    """Read JSON objects, one per line."""
    return from_rows(_json_rows(path), spec, lambda i: f"{path}, line {i + 1}")


def read_tsv(path: Path, spec: Spec) -> Table:
    """Read tab-separated fields, with a header or in positional order."""
    lines = _lines(path)
    first = next(lines, None)
    header = first is not None and _is_header(first[1].split("\t"), spec, first[0])
    names = first[1].split("\t") if first is not None and header else None
    columns: dict[str, list[Any]] = {name: [] for name in spec.known}
    count = 0
    for where, line in chain([] if header or first is None else [first], lines):
        fields = line.split("\t")
        if names is None:
            names = _positions(len(fields), spec, where)
        if len(fields) != len(names):
            raise InputError(
                "UNSORTED",
                None,
                "{where} has {number} fields; {number_2} are expected: {names}",
                where=where,
                number=len(fields),
                number_2=len(names),
                names=", ".join(names),
            )
        row = dict(zip(names, fields, strict=True))
        for name in spec.known:
            columns[name].append(row.get(name))
        count += 1
    return make_table(spec, dict(columns), count, lambda i: f"{path}, line {i + 1 + header}", names or (), textual=True)


def _is_header(fields: Sequence[str], spec: Spec, where: str) -> bool:
    """Return whether the first line is a header, which contains the name of a known column."""
    if not {field.strip().casefold() for field in fields} & set(spec.known):
        return False
    missing = [name for name in spec.required if name not in fields]
    if missing or len(set(fields)) != len(fields):
        raise InputError(
            "UNSORTED",
            None,
            "{where} is a header of {fields}; it must have each of {required} once, and may have {optional}",
            where=where,
            fields=fields,
            required=list(spec.required),
            optional=list(spec.optional),
        )
    if not spec.others and not set(fields) <= set(spec.known):
        refuse_unknown(fields, spec, where)
    return True


def _positions(width: int, spec: Spec, where: str) -> list[str]:
    names = list(spec.positional[:width])
    if width > len(spec.positional) or not set(spec.required) <= set(names):
        raise InputError(
            "missing",
            None,
            "{where} has {width} fields and is no header; without a header the columns are {names}: add "
            "a header that names {names_2}",
            where=where,
            width=width,
            names=", ".join(spec.positional),
            names_2=", ".join(spec.required),
        )
    return names


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    return ((f"{path}, line {at}", line) for at, line in numbered_lines(path, InputError))


def _json_rows(path: Path) -> Iterator[Any]:
    for where, line in _lines(path):
        try:
            yield parse_json(line)
        except (ValueError, RecursionError) as error:
            found = "is blank" if not line.strip() else f"is not JSON: {error}"
            raise InputError(
                "UNSORTED", None, "{where} {found}; a .jsonl file has one JSON object a line", where=where, found=found
            ) from None


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
    _check_names(names, spec)
    kept = [name for name in names if name in spec.known]
    groups = [{name: _arrow_values(table.column(name)) for name in kept} for table in read_groups(file, path, kept)]
    columns = {name: _joined([group[name] for group in groups]) for name in kept}
    return make_table(spec, columns, int(file.metadata.num_rows), lambda i: f"{path}, row {i}", names)


def _from_arrow(arrow_table: Any, spec: Spec, where: Callable[[int], str]) -> Table:
    names = list(arrow_table.column_names)
    _check_names(names, spec)
    columns = {name: _arrow_values(arrow_table.column(name)) for name in names if name in spec.known}
    return make_table(spec, columns, int(arrow_table.num_rows), where, names)


def _check_names(names: Sequence[str], spec: Spec) -> None:
    wrong = [name for name in spec.known if names.count(name) != 1 and (name in spec.required or name in names)]
    if wrong:
        raise InputError(
            "UNSORTED",
            None,
            "{what} has the columns {names}; it must have {wrong!r} once",
            what=spec.what,
            names=list(names),
            wrong=wrong[0],
        )
    if not spec.others and not set(names) <= set(spec.known):
        refuse_unknown(names, spec, spec.what)


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
