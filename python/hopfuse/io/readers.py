"""Read tables from .jsonl, .tsv and .parquet files, Arrow tables, record batches or mappings, a batch at a time."""

from __future__ import annotations

import os
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_suffix, wrong_type
from ..errors import InputError
from .arrow import arrow, empty_batch, field_types
from .files import existing_file
from .json_lines import numbered_lines, parse_line
from .parquet import open_parquet, read_groups
from .qrels import wrong_fields
from .tables import ROWS, Spec, Table, check_columns, joined, make_table, row_batches
from .tsv import tsv_records

#: The number of a line and its fields.
Record = tuple[int, list[str]]

#: The column of the reason in a list of passages that a build left out, which is a file of passages, too.
REASON = "failure"


def read_table(source: Any, spec: Spec) -> Table:
    """Read the whole table of which :func:`read_batches` gives the batches."""
    return source if isinstance(source, Table) else joined(read_batches(source, spec))


def read_batches(source: Any, spec: Spec) -> Iterator[Table]:
    """Yield the batches, at least one, of a path (.jsonl, .tsv, .parquet), an Arrow table, or mappings, one per row.

    A Table is its own batch. Where the spec allows other columns, a warning names those of a file or an Arrow table.

    Raises
    ------
    InputError
        The source is of another kind, or a row is malformed; the message names the file and the line. A mapping has a
        key that the table does not have.
    MissingExtraError
        An Arrow table or a Parquet file is given and pyarrow is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        read = _READERS[check_suffix(path, spec.what, *_READERS)]
        return _telling_unread(read(existing_file(path, spec.what), spec), spec, str(path))
    if isinstance(source, Table):
        return iter([source])
    if hasattr(source, "__arrow_c_stream__"):
        table = arrow(f"reading {spec.what} from an Arrow table").table(source)
        return _telling_unread(_arrow_table(table, spec), spec, f"the table of {spec.what}")
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes, np.ndarray)):
        return row_batches(iter(source), spec, f"{spec.what}[{{}}]".format, others=False)
    columns = ", ".join(map(repr, spec.required))
    raise wrong_type(
        source, spec.what, f"a path ({', '.join(_READERS)}), an Arrow table, or a list of mappings with {columns}"
    )


def _telling_unread(batches: Iterator[Table], spec: Spec, source: str) -> Iterator[Table]:
    """Yield batches, with a warning about columns that are not read, each named once."""
    told = {REASON}
    for table in batches:
        unread = [name for name in table.unread if name not in told and name not in spec.ignored]
        if unread:
            told.update(unread)
            advice = f"; {spec.advice}" if spec.advice else ""
            warnings.warn(
                f"columns of {source} that are not read: {', '.join(unread)}. Its rows have {', '.join(spec.known)}"
                f"{advice}",
                UserWarning,
                stacklevel=2,
            )
        yield table


def _jsonl(path: Path, spec: Spec) -> Iterator[Table]:
    """Yield JSON objects, one per line that is not blank."""
    numbers = array("q")

    def rows() -> Iterator[Any]:
        for number, line in numbered_lines(path, InputError):
            if line.strip():
                numbers.append(number)
                yield parse_line(line, f"{path}, line {number}", InputError)

    return row_batches(rows(), spec, lambda row: f"{path}, line {numbers[row]}", others=spec.others)


def _tsv(path: Path, spec: Spec) -> Iterator[Table]:
    """Yield tab-separated fields, with a header or in positional order."""
    records = tsv_records(numbered_lines(path, InputError))
    first = next(records, None)
    names: Sequence[str] | None = None
    if first is not None and _is_header(first[1], spec, f"{path}, line {first[0]}"):
        names = first[1]
    elif first is not None:
        names = _positions(len(first[1]), spec, f"{path}, line {first[0]}")
        records = chain([first], records)
    is_first = True
    while (taken := list(_checked(islice(records, ROWS), names or (), path))) or is_first:
        fields = zip(*(row for _, row in taken), strict=True) if taken else iter([()] * len(names or spec.known))
        columns = {name: list(own) for name, own in zip(names or spec.known, fields, strict=True) if name in spec.known}
        numbers = array("q", [number for number, _ in taken])
        yield make_table(spec, columns, len(taken), _lines(path, numbers), names or (), textual=True)
        is_first = False


def _checked(records: Iterable[Record], names: Sequence[str], path: Path) -> Iterator[Record]:
    """Yield records, which have a field for each name."""
    for number, fields in records:
        if len(fields) != len(names):
            raise wrong_fields(fields, ", ".join(names), f"{path}, line {number}").about(kind=InputError)
        yield number, fields


def _lines(path: Path, numbers: Sequence[int]) -> Callable[[int], str]:
    return lambda row: f"{path}, line {numbers[row]}"


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


def _parquet(path: Path, spec: Spec) -> Iterator[Table]:
    """Yield the known columns of a Parquet file; a row group is in memory at a time.

    Raises
    ------
    InputError
        A row group is larger than :data:`hopfuse.io.parquet.MOST_GROUP_BYTES`.
    """
    file = open_parquet(path, f"reading {spec.what} from a Parquet file")
    names = file.schema_arrow.names
    check_columns(names, spec.what, spec.required, spec.known, others=spec.others)
    kept = [name for name in names if name in spec.known]
    groups = (batch for group in read_groups(file, path, kept) for batch in group.to_batches(max_chunksize=ROWS))
    return _arrow_batches(groups, file.schema_arrow, spec, lambda row: f"{path}, row {row}")


def _arrow_table(table: Any, spec: Spec) -> Iterator[Table]:
    check_columns(list(table.column_names), spec.what, spec.required, spec.known, others=spec.others)
    return _arrow_batches(table.to_batches(max_chunksize=ROWS), table.schema, spec, f"{spec.what} row {{}}".format)


def _arrow_batches(batches: Iterable[Any], schema: Any, spec: Spec, where: Callable[[int], str]) -> Iterator[Table]:
    """Yield record batches, or one without rows, as tables."""
    first = 0
    for batch in batches:
        yield of_batch(batch, spec, first, where, schema.names)
        first += batch.num_rows
    if not first:
        yield of_batch(empty_batch(schema), spec, 0, where, schema.names)


def of_batch(batch: Any, spec: Spec, first: int, where: Callable[[int], str], given: Iterable[str]) -> Table:
    """Return the known columns of a record batch as a table; ``first`` is the number of its first row."""
    columns = {name: batch.column(name) for name in batch.schema.names if name in spec.known}
    table = make_table(spec, columns, batch.num_rows, lambda row: where(first + row), given)
    return replace(table, types=field_types(columns.get("metadata")))


_READERS = {".jsonl": _jsonl, ".tsv": _tsv, ".parquet": _parquet}
