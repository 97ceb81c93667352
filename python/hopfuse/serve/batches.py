"""Divide the queries of a request into pieces, and search a batch of several requests on a worker thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from ..errors import FormatError, HopfuseError
from ..recipes import SearchResult
from ..retriever import EncoderCalls, Retriever, calling
from .errors import RefusalError, damaged, in_request, status_of
from .found import HitReader, QueryRanking, Sizes, found_of
from .metrics import Metrics
from .schema import NoteOut
from .searches import SMALL_BYTES, SMALL_HITS
from .snapshots import IndexSnapshot, SearchQuery, allowed

#: Passages of filters for which it is looked up whether their part of the index exists; others count as new.
_LOOKED_UP = 1 << 22


class Piece(NamedTuple):
    """Queries that are searched in one batch.

    Attributes
    ----------
    places : list of int
        Their positions in the request.
    encodes : bool
        Whether the encoder is called for them.
    parts : int, optional
        Parts of the index that have to be made for their filters; None for queries without filters.
    """

    places: list[int]
    encodes: bool = False
    parts: int | None = None


def pieces_of(
    queries: Sequence[SearchQuery], encodes: Sequence[bool], snapshot: IndexSnapshot, limit: int
) -> list[Piece]:
    """Return the pieces of a request's queries, each of at most ``limit``.

    Queries with filters and queries without are in different pieces. So are queries with vectors and without, and those
    for which the encoder is called: no query with a vector waits for a text, and the encoder gets the texts of the
    piece, in its order. The queries of a filter whose part of the index has to be made are pieces of their own.

    Parameters
    ----------
    queries : sequence of SearchQuery
        Equal filters are the same object.
    encodes : sequence of bool
        Whether the encoder is called, by query.
    snapshot : IndexSnapshot
    limit : int
    """
    found: dict[tuple[int, bool, bool], list[int]] = {}  # by filter, 0 for none and 1 for those whose parts exist
    of_filter: dict[int, int] = {}
    left = _LOOKED_UP
    for at, query in enumerate(queries):
        which = 0
        if query.allow is not None:
            if id(query.allow) not in of_filter:
                left -= snapshot.index.num_passages
                is_known = left >= 0 and snapshot.has_part(query.allow)
                of_filter[id(query.allow)] = 1 if is_known else 2 + len(of_filter)
            which = of_filter[id(query.allow)]
        found.setdefault((which, query.vector is None, encodes[at]), []).append(at)
    pieces = list[Piece]()
    for (which, _, encoded), places in sorted(found.items()):
        for start in range(0, len(places), limit):
            parts = None if which == 0 else int(which > 1)  # of a part that has to be made, each
            pieces.append(Piece(places[start : start + limit], encoded, parts))
    return pieces


log = logging.getLogger("hopfuse.serve")
#: Bytes of hits that a batch reads. Others are read when their answers are encoded, and are counted before.
READ_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How to search a batch; work with equal plans shares one."""

    snapshot: IndexSnapshot
    retriever: Retriever
    k: int
    trace: bool
    restricted: bool
    per_document: int | None = None
    #: Whether the encoder is called, which may take long, or for ever.
    encodes: bool = False
    #: Whether it makes parts of the index, for which queries whose parts exist do not wait.
    makes: bool = False
    #: The request that the batch is for, or None for any.
    alone: object = None


@dataclass(frozen=True, slots=True)
class RequestShare:
    """The queries of one request in a batch, and the fields of passages to return."""

    queries: Sequence[SearchQuery]
    fields: frozenset[str]
    #: Whether a note is an error.
    strict: bool = False
    #: Whether a trace may name passages that the filter hides.
    sees_all: bool = True
    #: Whether it is searched to warm up, which no metric counts.
    warms_up: bool = False


class Runner:
    """Searches batches.

    Parameters
    ----------
    metrics : Metrics
    calls : EncoderCalls
        How encoders are called.
    """

    def __init__(self, metrics: Metrics, calls: EncoderCalls) -> None:
        self._metrics, self._calls = metrics, calls

    def run(self, plan: BatchPlan, payloads: list[RequestShare]) -> list[Any]:
        """Search a batch; if that fails, search each part alone, so that only the faulty one fails."""
        with calling(self._calls):
            outcomes, faults = self._parts(plan, payloads)
        if faults:  # one traceback for a batch: if all fails, the log stays readable
            log.error("%d of %d requests of a batch failed", len(faults), len(payloads), exc_info=faults[0])
        return outcomes

    def _parts(self, plan: BatchPlan, payloads: list[RequestShare]) -> tuple[list[Any], list[Exception]]:
        """Return the outcome of each part, and the errors that are the server's fault."""
        try:
            return [*self._batch(plan, payloads)], []
        except FormatError:
            log.exception("the files of index %s are damaged", plan.snapshot.name)
            return [damaged()] * len(payloads), []
        except Exception as error:
            if isinstance(error, RefusalError) and error.code == "unavailable":  # each part would wait as long
                return [error] * len(payloads), []
            if len(payloads) == 1:
                return _failed(error)
        outcomes, faults = zip(*(self._parts(plan, [payload]) for payload in payloads), strict=True)
        return [*chain(*outcomes)], [*chain(*faults)]

    def _batch(self, plan: BatchPlan, payloads: list[RequestShare]) -> list[list[QueryRanking] | HopfuseError]:
        queries = [query for share in payloads for query in share.queries]
        began = time.perf_counter()
        found = plan.retriever.search(
            _column([query.text for query in queries]),
            vectors=_column([query.vector for query in queries]),
            entities=_column([query.entities for query in queries]),
            k=plan.k,
            allow=allowed(queries, plan.snapshot.index.num_passages),
            per_document=plan.per_document,
            trace=plan.trace,
        )
        searched = time.perf_counter()
        results: list[list[QueryRanking] | HopfuseError] = []
        readers = {fields: HitReader(plan.snapshot, plan.retriever, fields) for fields in {s.fields for s in payloads}}
        sizes = {fields: reader.sizes(found.hits) for fields, reader in readers.items()}
        at, room = 0, READ_BYTES
        for share in payloads:
            rows = range(at, at + len(share.queries))
            refusal = _first_note(found, rows) if share.strict else None
            at += len(share.queries)
            if refusal is not None:
                results.append(refusal)
                continue
            own = [_found(found, sizes[share.fields], b, share) for b in rows]
            nbytes = sum(one.nbytes for one in own)
            if nbytes <= min(room, SMALL_BYTES) and sum(map(len, own)) <= SMALL_HITS:
                reader, room = readers[share.fields], room - nbytes
                for one in own:
                    one.hits = reader.read(one, range(len(one)))
            results.append(own)
        if not payloads[0].warms_up:
            parts = self._metrics.parts
            parts["search"].observe(searched - began)
            parts["passages"].observe(time.perf_counter() - searched)
            self._metrics.queries.labels(plan.snapshot.name).inc(len(queries))
        return results


def _failed(error: Exception) -> tuple[list[Any], list[Exception]]:
    """Return an error as the outcome of a request; one of no class of the library's is not told to the client."""
    if not isinstance(error, HopfuseError):
        return [RefusalError("failed", None, "the search failed; the server's log says why")], [error]
    return [error], [error] if status_of(error) >= 500 else []


def _column(values: list[Any]) -> list[Any] | None:
    """Return what queries are given, None if it is nothing."""
    return values if any(value is not None for value in values) else None


def _first_note(found: SearchResult, rows: range) -> HopfuseError | None:
    """Return the first note of a request's queries as the error about its field."""
    notes = ((b, note) for b in rows for note in found.notes[b])
    return next((in_request(note, f"queries[{b - rows.start}]") for b, note in notes), None)


def _found(found: SearchResult, sizes: Sizes, query: int, share: RequestShare) -> QueryRanking:
    """Return what was found for one query; nothing of the passages is read."""
    notes = [NoteOut(note.code, str(note.field), note.sentence(str)) for note in found.notes[query]]
    if found.traces is None:
        return found_of(found.hits, sizes, query, None, notes)
    # The caller does not know the batch; passages that the filter left out may be another tenant's.
    hidden = ("query",) if share.sees_all else ("query", "left_out")
    trace = {key: value for key, value in found.traces[query].items() if key not in hidden}
    return found_of(found.hits, sizes, query, trace, notes)
