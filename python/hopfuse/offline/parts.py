"""Parts of a result as files, with the plan's digest and checksums."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from .._validation import check_choice, import_extra
from ..errors import FormatError

#: The result of a query: ``id``, ``hits``, further columns of the output, and ``notes`` if there are any, each with
#: ``code``, ``field`` and ``message``. JSON lines hold the notes, Parquet files do not.
Row = Mapping[str, Any]
KEY = b"hopfuse.part"
KINDS = ("jsonl", "parquet")
_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Output:
    """The file format of the parts, and its columns.

    Attributes
    ----------
    kind : {"jsonl", "parquet"}
    whole_ids : bool
        Whether ids of hits are integers instead of strings.
    columns : sequence of str
        Further columns of a hit: ``"title"`` and ``"text"``.
    metadata : mapping of str to str
        Columns of a hit's ``metadata`` and their types, as in :class:`hopfuse.Index`.
    legs : sequence of str
        Lists whose scores a hit has besides its own.
    answers : bool
        Whether a row has an ``answer``.

    Examples
    --------
    >>> from hopfuse.offline import Output
    >>> Output("jsonl", columns=["title"]).columns
    ('title',)
    """

    kind: Literal["jsonl", "parquet"]
    whole_ids: bool = False
    columns: Sequence[str] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    legs: Sequence[str] = ()
    answers: bool = False

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "legs", tuple(self.legs))

    def record(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


class Seal(NamedTuple):
    """The last line or footer of a part: the plan's digest, the part's number, and its rows.

    Of the rows, ``empty`` have no hit, and ``noted`` have notes.
    """

    plan: str
    part: int
    rows: int
    empty: int
    noted: int


class PartFormat(Protocol):
    """Writes and reads parts in one file format."""

    def encode(self, rows: Sequence[Row], seal: Seal) -> bytes:
        """Return the bytes of a part."""
        ...

    def seal(self, path: Path) -> Seal:
        """Return the seal of a part without reading its rows."""
        ...

    def rows(self, path: Path) -> Iterator[Row]:
        """Yield the rows of a part after verifying its checksums."""
        ...


def part_format(output: Output) -> PartFormat:
    """Return the format of an output's parts."""
    return ParquetParts(output) if output.kind == "parquet" else JsonlParts()


def seal_of(rows: Sequence[Row], plan: str, part: int) -> Seal:
    """Return the seal of a part with these rows."""
    return Seal(plan, part, len(rows), sum(not row["hits"] for row in rows), sum("notes" in row for row in rows))


class JsonlParts:
    """JSON lines; the last line is the seal, with the SHA-256 of the seal and the lines above it."""

    def encode(self, rows: Sequence[Row], seal: Seal) -> bytes:
        """Return the bytes of a part."""
        text = "".join(_encode(row) + "\n" for row in rows).encode()
        end = {"sha256": hashlib.sha256(text + _bytes(seal)).hexdigest(), **seal._asdict()}
        return text + json.dumps({"hopfuse": end}).encode() + b"\n"

    def seal(self, path: Path) -> Seal:
        """Return the seal of a part without reading its rows."""
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, io.SEEK_END) - 1024))
            return _sealed(file.read().splitlines()[-1:], path)[0]

    def lines(self, path: Path) -> list[bytes]:
        """Return the lines of a part before the seal, after verifying its SHA-256."""
        with open(path, "rb") as file:
            *lines, last = file.readlines() or [b""]
        seal, sha256 = _sealed([last], path)
        if sha256 != hashlib.sha256(b"".join([*lines, _bytes(seal)])).hexdigest():
            raise damaged(path)
        return lines

    def rows(self, path: Path) -> Iterator[Row]:
        """Yield the rows of a part."""
        return (json.loads(line) for line in self.lines(path))


class ParquetParts:
    """A Parquet file of one row group, with the seal in its footer and a checksum for every page."""

    def __init__(self, output: Output) -> None:
        names = ("pyarrow", "pyarrow.parquet")
        self._arrow, self._parquet = (import_extra(name, "writing results to a Parquet file") for name in names)
        self.schema = self._schema(output)

    def _schema(self, output: Output) -> Any:
        arrow = self._arrow
        hit = [("id", arrow.int64() if output.whole_ids else arrow.string()), ("score", arrow.float32())]
        hit += [(name, arrow.string()) for name in output.columns]
        if output.metadata:
            kinds = {"bool": arrow.bool_(), "int64": arrow.int64(), "float64": arrow.float64()}
            kinds["strings"] = arrow.list_(arrow.string())
            fields = [(name, kinds.get(kind, arrow.string())) for name, kind in output.metadata.items()]
            hit.append(("metadata", arrow.struct(fields)))
        if output.legs:
            hit.append(("legs", arrow.struct([(leg, arrow.float32()) for leg in output.legs])))
        columns = [("id", arrow.string()), ("hits", arrow.list_(arrow.struct(hit)))]
        return arrow.schema([*columns, ("answer", arrow.string())] if output.answers else columns)

    def encode(self, rows: Sequence[Row], seal: Seal) -> bytes:
        """Return the bytes of a part."""
        schema = self.schema.with_metadata({KEY: _bytes(seal)})
        table, file = self._arrow.Table.from_pylist(list(rows), schema=schema), io.BytesIO()
        with self.writer(file, schema) as writer:
            writer.write_table(table, row_group_size=max(1, len(rows)))
        return file.getvalue()

    def writer(self, file: Any, schema: Any) -> Any:
        """Return a writer of tables with the settings of all result files."""
        return self._parquet.ParquetWriter(file, schema, write_page_checksum=True)

    def seal(self, path: Path) -> Seal:
        """Return the seal of a part without reading its rows."""
        try:
            found = self._parquet.read_metadata(path).metadata[KEY]
            return Seal(**json.loads(found))
        except (ValueError, OSError, KeyError, TypeError):
            raise damaged(path) from None

    def table(self, path: Path) -> Any:
        """Return the rows of a part as an Arrow table."""
        try:
            return self._parquet.read_table(path, schema=self.schema, page_checksum_verification=True)
        except (ValueError, OSError):
            raise damaged(path) from None

    def rows(self, path: Path) -> Iterator[Row]:
        """Yield the rows of a part."""
        return iter(self.table(path).to_pylist())


def damaged(path: Path) -> FormatError:
    """Return the error for a damaged part."""
    return FormatError("damaged", None, "{path} is damaged; remove it and run again, which makes it anew", path=path)


def _bytes(seal: Seal) -> bytes:
    return json.dumps(seal._asdict()).encode()


def _sealed(lines: Sequence[bytes], path: Path) -> tuple[Seal, str]:
    try:
        found = json.loads(lines[0])["hopfuse"]
        return Seal(*(found[name] for name in Seal._fields)), found["sha256"]
    except (ValueError, LookupError, TypeError):
        raise damaged(path) from None
