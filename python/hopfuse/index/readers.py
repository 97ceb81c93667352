"""Tables from files and objects: columns of values, and where each row came from."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError

SUFFIXES = (".jsonl", ".tsv", ".parquet")


@dataclass(frozen=True)
class Spec:
    """The columns of a kind of table.

    ``positional`` is their order in a TSV file without a header. Unless ``others`` are allowed (and
    ignored), an unknown column is an error.
    """

    what: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    positional: tuple[str, ...]
    others: bool

    @property
    def known(self) -> tuple[str, ...]:
        """Every column that is read."""
        return self.required + self.optional


@dataclass(frozen=True)
class Table:
    """Columns of equal length; None stands for a value that is absent.

    Attributes
    ----------
    columns : dict of str to list or ndarray
    num_rows : int
    where : callable
        Where a row came from, for error messages.
    textual : bool
        Every value is a str (TSV); numbers are still to be parsed.
    """

    what: str
    columns: dict[str, Any]
    num_rows: int
    where: Callable[[int], str]
    textual: bool = False


def read_table(source: Any, spec: Spec) -> Table:
    """Read a path (.jsonl, .tsv, .parquet), an Arrow table, or mappings, one a row.

    Raises
    ------
    InputError
        The source is of another kind, or a row is malformed; the message names file and line.
    MissingExtraError
        An Arrow table or a Parquet file is given and pyarrow is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        return _read_path(Path(source), spec)
    if hasattr(source, "__arrow_c_stream__"):
        arrow = load_arrow("pyarrow", f"reading {spec.what} from an Arrow table")
        return _from_arrow(arrow.table(source), spec, lambda i: f"{spec.what} row {i}")
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes, np.ndarray)):
        return _from_rows(source, spec, lambda i: f"{spec.what}[{i}]")
    raise InputError(
        f"{spec.what} is a {type(source).__name__}; allowed: a path ({', '.join(SUFFIXES)}), an Arrow table, "
        f"or a list of mappings with {', '.join(map(repr, spec.required))}"
    )


def load_arrow(module: str, purpose: str) -> Any:
    """pyarrow, or the error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose) from None


def existing_file(path: Path, what: str) -> Path:
    """The path, if it is a file."""
    if not path.is_file():
        raise InputError(f"{what}: there is no file {str(path)!r}")
    return path


def _read_path(path: Path, spec: Spec) -> Table:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{spec.what} is the path {str(path)!r}; its suffix must be one of {', '.join(SUFFIXES)}")
    existing_file(path, spec.what)
    if suffix == ".jsonl":
        return _from_rows(_json_rows(path), spec, lambda i: f"{path}, line {i + 1}")
    if suffix == ".tsv":
        return _read_tsv(path, spec)
    parquet = load_arrow("pyarrow.parquet", f"reading {spec.what} from a Parquet file")
    try:
        file = parquet.ParquetFile(path)
        wanted = file.schema_arrow.names if not spec.others else [c for c in file.schema_arrow.names if c in spec.known]
        arrow_table = file.read(columns=wanted)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    return _from_arrow(arrow_table, spec, lambda i: f"{path}, row {i}")


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """(where, line) of a UTF-8 file, without line ends (LF or CR LF) and byte-order mark."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            where = f"{path}, line {number}"
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(f"{where} is not UTF-8: {error}") from None
            yield where, line.removesuffix("\n").removesuffix("\r")


def _json_rows(path: Path) -> Iterator[Any]:
    for where, line in _lines(path):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            found = "is blank" if not line.strip() else f"is not JSON: {error}"
            raise InputError(f"{where} {found}; a .jsonl file has one JSON object a line") from None


def _from_rows(rows: Iterable[Any], spec: Spec, where: Callable[[int], str]) -> Table:
    columns: dict[str, list[Any]] = {name: [] for name in spec.known}
    known = set(spec.known)
    count = 0
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{where(i)} is a {type(row).__name__}; a row is a mapping with {list(spec.required)}")
        if not spec.others and not known.issuperset(row):
            _refuse_unknown(row, spec, where(i))
        for name in spec.known:
            columns[name].append(row.get(name))
        count = i + 1
    return _table(spec, dict(columns), count, where)


def _read_tsv(path: Path, spec: Spec) -> Table:
    lines = _lines(path)
    first = next(lines, None)
    header = first is not None and _is_header(first[1].split("\t"), spec, first[0])
    names = first[1].split("\t") if first is not None and header else None
    columns: dict[str, list[Any]] = {name: [] for name in spec.known}
    count = 0
    for where, line in _chain(None if header else first, lines):
        fields = line.split("\t")
        if names is None:
            names = _positions(len(fields), spec, where)
        if len(fields) != len(names):
            raise InputError(f"{where} has {len(fields)} fields; {len(names)} are expected: {', '.join(names)}")
        row = dict(zip(names, fields, strict=True))
        for name in spec.known:
            columns[name].append(row.get(name))
        count += 1
    return _table(spec, dict(columns), count, lambda i: f"{path}, line {i + 1 + header}", textual=True)


def _chain(first: tuple[str, str] | None, rest: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if first is not None:
        yield first
    yield from rest


def _is_header(fields: Sequence[str], spec: Spec, where: str) -> bool:
    """The first line is a header if it holds the name of a known column."""
    if not {field.strip().casefold() for field in fields} & set(spec.known):
        return False
    missing = [name for name in spec.required if name not in fields]
    if missing or len(set(fields)) != len(fields):
        raise InputError(
            f"{where} is a header of {fields}; it must have each of {list(spec.required)} once, "
            f"and may have {list(spec.optional)}"
        )
    if not spec.others and not set(fields) <= set(spec.known):
        _refuse_unknown(fields, spec, where)
    return True


def _positions(width: int, spec: Spec, where: str) -> list[str]:
    names = list(spec.positional[:width])
    if width > len(spec.positional) or not set(spec.required) <= set(names):
        raise InputError(
            f"{where} has {width} fields and is no header; without a header the columns are "
            f"{', '.join(spec.positional)}: add a header that names {', '.join(spec.required)}"
        )
    return names


def _from_arrow(arrow_table: Any, spec: Spec, where: Callable[[int], str]) -> Table:
    names = list(arrow_table.column_names)
    missing = [name for name in spec.required if names.count(name) != 1]
    if missing:
        raise InputError(f"{spec.what} has the columns {names}; it must have {missing[0]!r} once")
    if not spec.others and not set(names) <= set(spec.known):
        _refuse_unknown(names, spec, spec.what)
    columns = {name: _arrow_values(arrow_table.column(name)) for name in names if name in spec.known}
    return _table(spec, columns, int(arrow_table.num_rows), where)


def _arrow_values(column: Any) -> Any:
    types = load_arrow("pyarrow", "reading an Arrow table").types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy() if number and column.null_count == 0 else column.to_pylist()


def _refuse_unknown(names: Iterable[Any], spec: Spec, where: str) -> None:
    unknown = [name for name in names if name not in spec.known]
    raise InputError(f"{where} has the column {unknown[0]!r}; allowed: {', '.join(spec.known)}")


def _table(
    spec: Spec, columns: dict[str, Any], num_rows: int, where: Callable[[int], str], textual: bool = False
) -> Table:
    """Drop optional columns that no row has."""
    absent = [name for name, values in columns.items() if isinstance(values, list) and all(v is None for v in values)]
    for name in absent:
        if name not in spec.required:
            del columns[name]
    return Table(spec.what, columns, num_rows, where, textual)
