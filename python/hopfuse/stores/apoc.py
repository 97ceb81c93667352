"""Files of Neo4j's APOC export procedures as a source."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from .._validation import UNREADABLE, check_suffix
from ..errors import FormatError
from ..io.arrow import arrow, unreadable
from ..io.json_lines import parse_json
from .neo4j import Labels, Neo4jSource, Node, Relationship
from .tables import check_whole_place, existing, split_place

#: Columns of APOC's CSV and Arrow files that are not properties.
_CSV = {"id": "_id", "labels": "_labels", "start": "_start", "end": "_end", "type": "_type"}
_ARROW = {"id": "<id>", "labels": "<labels>", "start": "<source.id>", "end": "<target.id>", "type": "<type>"}
_OWN = {*_CSV.values(), *_ARROW.values()}
#: Limit of the characters of a CSV field; Python's default is 131,072, and a text may be longer.
_LONGEST_FIELD = 1 << 30


def read_apoc(path: str | os.PathLike[str]) -> Iterator[Node | Relationship]:
    """Read a file of ``apoc.export.json.all``, ``apoc.export.csv.all`` or ``apoc.export.arrow.all``, by its suffix.

    Raises
    ------
    InputError
        The file does not exist, or has another suffix.
    FormatError
        A row is malformed; the message names file and row.
    """
    file = existing(Path(path), "an APOC export")
    readers = {".json": _json_items, ".jsonl": _json_items, ".csv": _csv_items, ".arrow": _arrow_items}
    check_suffix(file, "path", *readers)
    return readers[file.suffix.lower()](file)


def _json_items(path: Path) -> Iterator[Node | Relationship]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
                kind, properties = row["type"], row.get("properties", {})
                if not isinstance(properties, dict):
                    raise TypeError(f"its properties are {properties!r}, not an object")
                if kind == "node":
                    labels = tuple(map(str, row.get("labels", ())))
                    item: Node | Relationship = Node(str(row["id"]), labels, properties)
                elif kind == "relationship":
                    ends = str(row["start"]["id"]), str(row["end"]["id"])
                    item = Relationship(str(row["label"]), *ends, properties)
                else:
                    raise ValueError(f"its type is {kind!r}, not node or relationship")
            except UNREADABLE as error:
                raise _wrong_row(path, f"line {number}", "apoc.export.json", error) from None
            yield item


def _csv_items(path: Path) -> Iterator[Node | Relationship]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        try:
            _check_columns(path, rows.fieldnames or (), _CSV.values(), "apoc.export.csv.all")
            for row in rows:
                place = path, f"line {rows.line_num}", "apoc.export.csv"
                values = {name: _csv_value(value) for name, value in row.items() if name and value and name not in _OWN}
                labels = tuple(part for part in (row["_labels"] or "").split(":") if part)
                yield _item(place, row, _CSV, values, labels)
        except (csv.Error, UnicodeDecodeError) as error:
            raise _wrong_row(path, f"line {rows.line_num + 1}", "apoc.export.csv", error) from None


def _csv_value(text: str) -> Any:
    """Return a JSON list, which is how APOC writes lists; any other text as it is."""
    if text.startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _arrow_items(path: Path) -> Iterator[Node | Relationship]:
    numbers = count(1)
    for names, rows in _arrow_rows(path):
        _check_columns(path, names, ("<id>", "<labels>"), "apoc.export.arrow.all")
        for row, number in zip(rows, numbers, strict=False):
            place = path, f"row {number}", "apoc.export.arrow"
            values = {name: value for name, value in row.items() if value is not None and name not in _OWN}
            yield _item(place, row, _ARROW, values, row["<labels>"] or ())


def _arrow_rows(path: Path) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """Yield the columns and rows of each batch; pyarrow may end the process at values that it has not validated."""
    try:
        with arrow().OSFile(os.fspath(path)) as file:
            for batch in _arrow_batches(file, path):
                batch.validate(full=True)
                yield batch.schema.names, batch.to_pylist()
    except unreadable() as error:
        raise FormatError("damaged", None, "{path} is not an Arrow file: {error}", path=path, error=error) from None


def _check_columns(path: Path, names: Iterable[str], needed: Iterable[str], export: str) -> None:
    missing = [name for name in needed if name not in set(names)]
    if missing:
        raise FormatError(
            "missing",
            None,
            "{path} has no column {column!r}; a file of {export} has it",
            path=path,
            column=missing[0],
            export=export,
        )


def _wrong_row(path: Path, row: str, export: str, error: Exception) -> FormatError:
    return FormatError(
        "damaged",
        None,
        "{path}, {row} is not a row of {export}: {error}",
        path=path,
        row=row,
        export=export,
        error=error,
    )


def _arrow_batches(file: Any, path: Path) -> Iterator[Any]:
    """Yield the batches of an Arrow file or stream: APOC writes either."""
    ipc = arrow().ipc
    with path.open("rb") as begin:
        is_file = begin.read(6) == b"ARROW1"
    if not is_file:
        yield from ipc.open_stream(file)
        return
    reader = ipc.open_file(file)
    for at in range(reader.num_record_batches):
        yield reader.get_batch(at)


def _item(
    place: tuple[Path, str, str],
    row: Mapping[str, Any],
    names: Mapping[str, str],
    properties: Mapping[str, Any],
    labels: Iterable[Any],
) -> Node | Relationship:
    """Return what a row of a table is; ``place`` is the file, the row in it and the export, for errors."""
    try:
        kind = row.get(names["type"])
        if kind:
            return Relationship(str(kind), _id(row, names["start"]), _id(row, names["end"]), properties)
        return Node(_id(row, names["id"]), tuple(map(str, labels)), properties)
    except UNREADABLE as error:
        raise _wrong_row(*place, error) from None


def _id(row: Mapping[str, Any], column: str) -> str:
    found = row.get(column)
    if found is None or found == "":
        raise ValueError(f"its column {column} is empty")
    return str(found)


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> Neo4jSource:
    """Return the source of ``apoc:FILE?passages=Chunk&entities=Entity&text=text``."""
    path, values = split_place(place, Labels.__dataclass_fields__)
    check_whole_place(place, queries, ", with labels: apoc:FILE?passages=Chunk&entities=Entity")
    existing(path, "an APOC export")
    return Neo4jSource(partial(read_apoc, path), Labels(**values))
