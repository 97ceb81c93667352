"""Arrow IPC streams as bodies of ``/v1/search``: one row for each query, and one for each ranking."""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from .._validation import float32_of
from ..errors import InputError
from ..io.arrow import unreadable
from .answers import PartedResponse
from .bounds import check_depth, check_most, check_settings
from .budget import Held
from .config import Limits
from .decoding import LARGE, decode, on_desk, read_queries
from .errors import RefusalError
from .found import RUN_BYTES, QueryRanking
from .http import encode
from .keys import Principal
from .repeated_keys import check_keys
from .schema import ArrowAbout, ArrowSettings, HitOut, QueryIn, ResultOut
from .searches import Search, SearchAnswer
from .service import Service
from .vectors import not_finite

ARROW = "application/vnd.apache.arrow.stream"
#: Key in the schema's metadata for the fields of a JSON body other than the queries.
KEY = b"hopfuse"
#: Columns of queries, and the type of their entries.
COLUMNS = {"text": "a string", "vector": "a list of floats", "entities": "a list of strings or integers"}
COLUMNS |= {"allow": COLUMNS["entities"]}
#: Values that pyarrow converts by one call, during which no other Python runs.
PART = 4096
_SETTINGS = msgspec.json.Decoder(ArrowSettings)


async def read_arrow(service: Service, body: bytes, principal: Principal, held: Held) -> Search:
    """Return the search in an Arrow stream.

    Parameters
    ----------
    service : Service
    body : bytes
        A stream with the columns ``text``, ``vector``, ``entities`` and ``allow``, all optional and nullable. The key
        ``hopfuse`` of the schema's metadata may hold a JSON object with the other fields of a search.
    principal : Principal
    held : Held
        The account of the request's bytes.

    Raises
    ------
    InputError
        The body is not a stream, has other columns or too many rows, is compressed or uses dictionaries.
    """
    arrived, limits = time.monotonic(), service.config.limits
    is_large = len(body) > LARGE or "pyarrow.ipc" not in sys.modules  # importing it takes long
    asked = await on_desk(service, held, is_large, _settings, body)
    snapshot = await service.snapshot_at(asked.index, principal, asked.at_least, asked.timeout_ms)
    check_depth(asked.options, "options", limits)
    given, vectors = await on_desk(service, held, is_large, _read, body, limits)
    queries, is_long = await read_queries(
        service, snapshot, principal, held, given, vectors, at=asked.at, is_long=is_large
    )
    return Search(
        snapshot=snapshot,
        queries=queries,
        is_long=is_long,
        k=asked.k,
        recipe=asked.recipe,
        options=asked.options,
        timeout_ms=asked.timeout_ms,
        strict=asked.strict,
        per_document=asked.per_document,
        fields=frozenset(asked.fields),
        principal=principal,
        owner=held.owner,
        arrived=arrived,
    )


def _settings(body: bytes) -> ArrowSettings:
    """Return the fields of a search in the schema's metadata; no column is read."""
    pa = _arrow()
    try:
        schema = pa.ipc.open_stream(body).schema
    except unreadable() as error:
        raise _not_a_stream(error) from None
    given = (schema.metadata or {}).get(KEY, b"{}")
    check_settings(len(given), KEY.decode())
    found: ArrowSettings = decode(_SETTINGS, given)
    check_keys(given)
    return found


def _read(body: bytes, limits: Limits) -> tuple[list[QueryIn], Sequence[Any]]:
    """Return the queries of a stream, and their vectors."""
    table = _table(body, limits)
    vectors = _vectors(table)
    columns = [_column(table, name, limits) for name in ("text", "entities", "allow")]
    given = [QueryIn(text, None, None, entities, allow) for text, entities, allow in zip(*columns, strict=True)]
    return given, vectors


class _Parts:
    """A file whose content is the parts that were written."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, part: Any) -> int:
        self.parts.append(bytes(part))
        return len(self.parts[-1])

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Do nothing: the parts are kept."""


def arrow_response(answer: SearchAnswer, fields: frozenset[str]) -> PartedResponse:
    """Return an answer of ``/v1/search`` as an Arrow stream."""
    return PartedResponse(write_arrow(answer, fields), ARROW)


def write_arrow(answer: SearchAnswer, fields: frozenset[str]) -> list[bytes]:
    """Return the rankings as a stream, in parts; a long one has several record batches.

    The columns are lists with an entry for each hit: ``id``, ``score`` (float32) and, if requested, ``title``, ``text``
    and ``metadata`` (JSON). The key ``hopfuse`` of the schema's metadata holds ``seq``, ``timings`` and, if there are
    any, ``notes``.
    """
    pa, sink = _arrow(), _Parts()
    kinds = {"id": pa.int64() if answer.reader.has_numbers else pa.string(), "score": pa.float32()}
    kinds |= {name: pa.string() for name in ("title", "text", "metadata") if name in fields}
    notes = [one.notes for one in answer.found]
    about = msgspec.json.encode(ArrowAbout(answer.snapshot.seq, answer.timings, notes if any(notes) else []))
    schema = pa.schema([(name, pa.list_(kind)) for name, kind in kinds.items()], {KEY: about})
    with pa.ipc.new_stream(sink, schema) as writer:
        for run in _runs(answer.found):
            writer.write_batch(_batch(answer.reader.results(run), kinds, schema))
    return sink.parts


def _runs(found: Sequence[QueryRanking]) -> Iterator[list[QueryRanking]]:
    """Yield the rankings in runs that are read together."""
    run, room = list[QueryRanking](), RUN_BYTES
    for one in found:
        if room <= 0:
            yield run
            run, room = [], RUN_BYTES
        run.append(one)
        room -= one.nbytes
    if run:
        yield run


def _batch(results: Sequence[ResultOut], kinds: Mapping[str, Any], schema: Any) -> Any:
    """Return results as a record batch."""
    pa = _arrow()
    hits = [hit for result in results for hit in result.hits]
    ends = pa.array(np.cumsum([0, *(len(result.hits) for result in results)], dtype=np.int32))
    scores = pa.array(np.fromiter((hit.score for hit in hits), np.float32, len(hits)))
    columns = [
        scores if name == "score" else _array([_shown(hit, name) for hit in hits], kind) for name, kind in kinds.items()
    ]
    return pa.record_batch([pa.ListArray.from_arrays(ends, column) for column in columns], schema=schema)


def _array(values: list[Any], kind: Any) -> Any:
    """Return an Arrow array, made in parts, between which other threads run."""
    pa = _arrow()
    parts = [pa.array(values[at : at + PART], kind) for at in range(0, len(values), PART)]
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def _shown(hit: HitOut, name: str) -> Any:
    value = getattr(hit, name)
    return encode(value).decode() if isinstance(value, dict) else value


def _arrow() -> Any:
    try:
        pa = import_module("pyarrow")
        import_module("pyarrow.compute")
        import_module("pyarrow.ipc")
    except ModuleNotFoundError:
        raise RefusalError("unsupported", None, "this server has no pyarrow; send JSON") from None
    return pa


def _table(body: bytes, limits: Limits) -> Any:
    """Return a stream as a table, fully validated."""
    pa = _arrow()
    refused: tuple[type[Exception], ...] = (*unreadable(), struct.error)
    try:
        _check_messages(pa, body, limits)
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
    except InputError:  # a ValueError, too
        raise
    except refused as error:
        raise _not_a_stream(error) from None
    unknown = set(table.schema.names) - set(COLUMNS)
    if unknown or len(set(table.schema.names)) != table.num_columns:
        raise InputError(
            "choice",
            "columns",
            "{field} are {given}; allowed, each once: {allowed}",
            given=", ".join(name[:50] for name in table.schema.names[:50]),
            allowed=", ".join(COLUMNS),
        )
    if not table.num_rows:
        raise InputError("empty", "queries", "{field} has no rows; send at least one")
    check_most(table.num_rows, "queries", limits, "queries", "row")
    return table


def _not_a_stream(error: BaseException) -> InputError:
    return InputError("syntax", None, "the body is not an Arrow IPC stream: {reason}", reason=_line(error))


def _check_messages(pa: Any, body: bytes, limits: Limits) -> None:
    """Refuse compression, dictionaries and too many rows or batches before anything is decoded."""
    rows = batches = 0
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type == "dictionary":
            raise InputError("unsupported", "columns", "{field} are dictionaries; write plain strings")
        if message.type == "record batch":
            count, compressed = _batch_of(message.metadata.to_pybytes())
            if compressed:
                raise InputError(
                    "unsupported", "columns", "{field} are compressed; write the stream without compression"
                )
            rows, batches = rows + count, batches + 1
            check_most(rows if count >= 0 else limits.queries + 1, "queries", limits, "queries", "row")
            check_most(batches, "queries", limits, "queries", "record batch")


def _batch_of(message: bytes) -> tuple[int, bool]:
    """Return the number of rows of a record batch message, and whether it is compressed (Arrow's Message.fbs).

    A flatbuffer's table begins with the distance back to its vtable, which has the offset of each field, 0 if absent.
    """
    root = struct.unpack_from("<I", message, 0)[0]
    header = _field(message, root, 2)
    if header is None:
        return 0, False
    batch = header + struct.unpack_from("<I", message, header)[0]
    length = _field(message, batch, 0)
    count = 0 if length is None else struct.unpack_from("<q", message, length)[0]
    return count, _field(message, batch, 3) is not None


def _field(message: bytes, table: int, number: int) -> int | None:
    """Return the position of a table's field, None if it is absent."""
    vtable = table - struct.unpack_from("<i", message, table)[0]
    at = 4 + 2 * number
    if vtable < 0 or at + 2 > struct.unpack_from("<H", message, vtable)[0]:
        return None
    place = struct.unpack_from("<H", message, vtable + at)[0]
    return table + place if place else None


def _column(table: Any, name: str, limits: Limits) -> list[Any]:
    """Return the entries of a column: texts or lists."""
    if name not in table.schema.names:
        return [None] * table.num_rows
    pa, column = _arrow(), table.column(name).combine_chunks()
    inner = _entry_type(column)
    is_text = pa.types.is_string(inner) or pa.types.is_large_string(inner)
    is_list = inner is not column.type
    if not (is_list and (is_text or pa.types.is_integer(inner)) if name != "text" else is_text and not is_list):
        raise _wrong_type(name, column)
    if not is_list:
        return [one.as_py() for one in column]
    lengths = [None if one is None else int(one) for one in pa.compute.list_value_length(column).to_pylist()]
    for row, length in enumerate(lengths):
        check_most(length or 0, f"queries[{row}].{name}", limits, name)
    flat = column.flatten()  # of the rows that are not null
    check_most(len(flat), None, limits, "values", "value")
    if flat.null_count:
        raise InputError("type", name, "{field} has a null in a list; leave it out")
    values = [one for at in range(0, len(flat), PART) for one in flat.slice(at, PART).to_pylist()]
    entries: list[Any] = []
    at = 0
    for length in lengths:
        entries.append(None if length is None else values[at : at + length])
        at += length or 0
    return entries


def _vectors(table: Any) -> Sequence[Any]:
    """Return the vectors of the queries, None for those without; all values are checked together."""
    if "vector" not in table.schema.names:
        return [None] * table.num_rows
    pa, column = _arrow(), table.column("vector").combine_chunks()
    inner = _entry_type(column)
    if inner is column.type or not pa.types.is_floating(inner):
        raise _wrong_type("vector", column)
    rows = [at for at, valid in enumerate(column.is_valid().to_pylist()) if valid]
    given = column.flatten().to_numpy(zero_copy_only=False)  # of the rows that are not null
    lengths = pa.compute.list_value_length(column).drop_null().to_numpy()
    ends = np.cumsum(lengths).tolist()
    values = float32_of(given)
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(ends, at, "right"))
        raise not_finite(f"queries[{rows[row]}].vector[{at - (ends[row - 1] if row else 0)}]")
    vectors: list[Any] = [None] * table.num_rows
    for row, begin, end in zip(rows, [0, *ends], ends, strict=False):
        vectors[row] = values[begin:end]
    return vectors


def _entry_type(column: Any) -> Any:
    """Return the type of the entries' elements if they are lists, else the column's."""
    types, kind = _arrow().types, column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return kind.value_type if is_list else kind


def _wrong_type(name: str, column: Any) -> InputError:
    return InputError(
        "type",
        name,
        "{field} is of type {given}; each entry must be {allowed}",
        given=str(column.type)[:100],
        allowed=COLUMNS[name],
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
