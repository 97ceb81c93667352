"""Decode and check the bodies of requests.

What grows with a request runs on the threads of :class:`~hopfuse.serve.retriever_cache.Desk`; the event loop decodes
and checks only small requests, for which a change of threads would take longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import msgspec
from numpy.typing import NDArray

from ..errors import InputError
from .bounds import check_conditions, check_depth, check_most, check_settings, check_values
from .budget import Held
from .config import Limits
from .errors import invalid_value, not_json, steps_of
from .keys import Principal
from .repeated_keys import check_keys
from .schema import (
    MAPPINGS,
    DeletionRequest,
    EdgeIn,
    EntityIn,
    Outline,
    PassageIn,
    PassagesRequest,
    QueryIn,
    SearchRequest,
)
from .searches import Search
from .service import Service
from .snapshots import IndexSnapshot, SearchQuery
from .vectors import vector_of

#: Bytes from which on a body is decoded on a thread.
LARGE = 32768
#: Bytes of a value of a body that is decoded to be shown in an error.
_SHOWN = 1024
#: What msgspec raises at JSON that it cannot decode, or that has other types than are stated.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DECODER = msgspec.json.Decoder(SearchRequest)
_OUTLINE = msgspec.json.Decoder(Outline)
_CHANGES = msgspec.json.Decoder(PassagesRequest)
_DELETIONS = msgspec.json.Decoder(DeletionRequest)
#: Types of the elements of lists of a body.
_PARTS = {"queries": QueryIn, "passages": PassageIn, "entities": EntityIn, "edges": EdgeIn}

P = ParamSpec("P")
R = TypeVar("R")


async def read_search(service: Service, body: bytes, principal: Principal, held: Held) -> Search:
    """Return the search in a JSON body.

    Raises
    ------
    RefusalError
        400 with the field; 404 if the index does not exist; 504 if it does not reach the seq in time.
    """
    arrived, limits, is_large = time.monotonic(), service.config.limits, len(body) > LARGE
    if is_large or service.batcher.is_busy or b'"timeout_ms"' in body:  # what will be refused need not be decoded
        outline = await on_desk(service, held, is_large, _outline, body, limits)
        service.check_deadline(principal, len(outline.queries), outline.timeout_ms, arrived)
        del outline
    has_waited = False
    while True:
        asked = await on_desk(service, held, is_large, decode_checked, _DECODER, body, limits)
        snapshot = service.snapshot(asked.index, principal)
        if has_waited or asked.at_least is None or (asked.at_least != "latest" and asked.at_least <= snapshot.seq):
            break
        waits = asked.index, principal, asked.at_least, asked.timeout_ms
        del asked  # only the body, which is counted, waits
        await service.snapshot_at(*waits)
        has_waited = True
    check_depth(asked.options, "options", limits)
    queries, is_long = await read_queries(
        service, snapshot, principal, held, asked.queries, at=asked.at, is_long=is_large
    )
    return Search(
        snapshot=snapshot,
        queries=queries,
        is_long=is_long,
        k=asked.k,
        recipe=asked.recipe,
        options=asked.options,
        timeout_ms=asked.timeout_ms,
        trace=asked.trace,
        strict=asked.strict,
        per_document=asked.per_document,
        fields=frozenset(asked.fields),
        principal=principal,
        owner=held.owner,
        arrived=arrived,
    )


async def read_queries(
    service: Service,
    snapshot: IndexSnapshot,
    principal: Principal,
    held: Held,
    given: Sequence[str | QueryIn],
    vectors: Sequence[Any] | None = None,
    field: str = "queries",
    *,
    at: Any = None,
    is_long: bool,
) -> tuple[list[SearchQuery], bool]:
    """Return the checked queries of a request, and whether they are many or ``is_long`` is given.

    Parameters
    ----------
    service : Service
    snapshot : IndexSnapshot
    principal : Principal
    held : Held
        The account of the request's bytes, which then includes those of the queries.
    given, vectors, field
        See :meth:`_QueryReader.read`.
    at : str, int or float, optional
        The time at which passages must be valid.
    is_long : bool
        Whether the body is large.
    """
    is_long = is_long or _takes_long(given, snapshot) or (at is not None and snapshot.index.num_passages > FEW)
    reader = _QueryReader(snapshot, principal, service.config.limits, held, at)
    queries = await on_desk(service, held, is_long, reader.read, given, vectors, field)
    held.add(reader.nbytes)
    return queries, is_long


async def on_desk(
    service: Service, held: Held, is_large: bool, job: Callable[P, R], /, *given: P.args, **named: P.kwargs
) -> R:
    """Return what a job returns, on a thread if it is large, else at once."""
    if not is_large:
        return job(*given, **named)
    return await service.desk.run(held.owner, job, *given, **named)


def _outline(body: bytes, limits: Limits) -> Outline:
    """Return the outline of a search, after checking its number of queries."""
    check_values(body, limits)
    found: Outline = decode(_OUTLINE, body)
    check_most(len(found.queries), "queries", limits, "queries")
    check_settings(len(memoryview(found.options)), "options")
    return found


async def read_change(service: Service, body: bytes, held: Held) -> PassagesRequest:
    """Return the change in a JSON body; a refusal names the field."""
    limits, is_large = service.config.limits, len(body) > LARGE
    asked: PassagesRequest = await on_desk(service, held, is_large, decode_checked, _CHANGES, body, limits)
    return asked


async def read_deletion(service: Service, body: bytes, held: Held) -> DeletionRequest:
    """Return the passages to delete in a JSON body; a refusal names the field."""
    limits, is_large = service.config.limits, len(body) > LARGE
    asked: DeletionRequest = await on_desk(service, held, is_large, decode_checked, _DELETIONS, body, limits)
    return asked


def decode_checked(decoder: msgspec.json.Decoder[Any], body: bytes, limits: Limits) -> Any:
    """Decode a JSON body that has as many values as are allowed, and each key once."""
    check_values(body, limits)
    found = decode(decoder, body)
    check_keys(body)
    return found


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode a JSON body; a refusal names the field."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        path = _named(body, str(error).partition(" - at `$")[2].rstrip("`").lstrip("."), decoder)
        part = path.partition("[")[0]
        holder: Any = decoder.type if part not in _PARTS or path.rpartition(".")[2] == part else _PARTS[part]
        raise invalid_value(error, holder, path, _given_at(body, path), _PARTS) from None
    except _UNREADABLE as error:
        raise not_json(error) from None


def _given_at(body: bytes, path: str) -> Any:
    """Return what stands at a path of a body, the beginning of its text if it is long; UNSET if nothing does."""
    found = _raw_at(body, path)
    if found is None:
        return msgspec.UNSET
    if len(found) > _SHOWN:
        return bytes(found[:_SHOWN]).decode(errors="replace")
    try:
        return msgspec.json.decode(found)
    except _UNREADABLE:
        return msgspec.UNSET


def _raw_at(body: Any, path: str) -> Any:
    """Return the text at a path of a body, None if there is none; only what is on the way is decoded."""
    try:
        for name, place in steps_of(path):
            if name:
                body = msgspec.json.decode(body, type=dict[str, msgspec.Raw])[name]
            else:
                body = msgspec.json.decode(body, type=list[msgspec.Raw])[int(place)]
    except (LookupError, *_UNREADABLE):
        return None
    return memoryview(body)


def _named(body: bytes, path: str, decoder: msgspec.json.Decoder[Any]) -> str:
    """Return a path with the key of a mapping that holds the wrong value, which msgspec leaves out."""
    before, unnamed, rest = path.partition("[...]")
    if not unnamed:
        return path
    found = _raw_at(body, before)
    if found is None:
        return before
    kind = MAPPINGS.get(before.rpartition(".")[2])
    try:
        values = msgspec.json.decode(found, type=dict[str, msgspec.Raw])
    except _UNREADABLE:  # behind the wrong value, which is as far as the decoder came
        return before
    for name, value in values.items():
        try:
            msgspec.json.decode(value, type=kind)
        except _UNREADABLE:
            return f"{before}.{name}{rest}"
    return before


# ---- Queries ---------------------------------------------------------------------------------------------------------


#: Work from which on queries are checked and divided on threads, in terms of ids and names: what a query counts as, and
#: the passages of the index that count as one for a filter.
_LONG, _OF_QUERY, _PASSAGES = 4096, 32, 64
#: Passages up to which it is quick to tell which of them are valid at a time.
FEW = 65536
#: Bytes that an id or a name takes in memory, about.
_NAME_BYTES = 64


class _QueryReader:
    """Checks the queries of one request, restricted to the passages that the key sees.

    Equal filters are evaluated once, and give the same array of rows.

    Parameters
    ----------
    snapshot : IndexSnapshot
    principal : Principal
    limits : Limits
    held : Held
        The account of the request's bytes. What is read is checked against it, and is to be added to it.
    at : str, int or float, optional
        The time at which passages must be valid.

    Attributes
    ----------
    nbytes : int
        Bytes of the queries that were read, without their texts.
    """

    def __init__(
        self, snapshot: IndexSnapshot, principal: Principal, limits: Limits, held: Held, at: Any = None
    ) -> None:
        self._snapshot, self._principal, self._limits, self._held = snapshot, principal, limits, held
        self._at = at
        self._rows: dict[bytes | None, Any] = {}  # by filter
        self.nbytes = 0

    def read(
        self, given: Sequence[str | QueryIn], vectors: Sequence[Any] | None = None, field: str = "queries"
    ) -> list[SearchQuery]:
        """Return the checked queries.

        Parameters
        ----------
        given : sequence of str or QueryIn
        vectors : sequence of ndarray or None, optional
            Vectors that have been checked already.
        field : str
            Name of the list in refusals.
        """
        check_most(len(given), field, self._limits, "queries")
        keys = self._check(given, field)
        return [
            self._one(one, f"{field}[{at}]", keys[at], None if vectors is None else vectors[at])
            for at, one in enumerate(given)
        ]

    def _check(self, given: Sequence[str | QueryIn], field: str) -> list[bytes | None]:
        """Refuse more than is allowed, before any work; return the filter of each query, as bytes to compare."""
        limits, values, keys = self._limits, 0, list[bytes | None]()
        for at, one in enumerate(given):
            text, allow, key = (one, None, None) if isinstance(one, str) else (one.text, one.allow, None)
            place = f"{field}[{at}]"
            if text is not None:
                check_most(len(text), f"{place}.text", limits, "text_chars", "character")
            if allow is not None:
                if isinstance(allow, Mapping):
                    values += check_conditions(allow, f"{place}.allow", limits)
                else:
                    check_most(len(allow), f"{place}.allow", limits, "allow")
                    values += len(allow)
                check_most(values, None, limits, "values", "value")
                key = msgspec.json.encode(allow, order="deterministic")
            if isinstance(one, QueryIn) and one.entities is not None:
                check_most(len(one.entities), f"{place}.entities", limits, "entities")
                values += len(one.entities)
            keys.append(key)
        check_most(values, None, limits, "values", "value")
        check_most(len(set(keys) - {None}), None, limits, "filters", "filter")
        return keys

    def _one(self, given: str | QueryIn, field: str, key: bytes | None, vector: Any) -> SearchQuery:
        if isinstance(given, str):
            return SearchQuery(given, allow=self._allowed(None, None, f"{field}.allow"))
        if vector is None:
            vector = vector_of(given, field)
        self.nbytes += (0 if vector is None else vector.nbytes) + _NAME_BYTES * len(given.entities or ())
        return SearchQuery(
            given.text,
            vector,
            self._entities(given.entities, f"{field}.entities"),
            self._allowed(given.allow, key, f"{field}.allow"),
        )

    def _allowed(self, allow: Any, key: bytes | None, field: str) -> Any:
        """Return the rows of a filter; equal filters have the same array."""
        if key is None and self._at is None:
            return self._snapshot.rows(None, self._principal, field)
        if key not in self._rows:
            rows: NDArray[Any] = self._snapshot.rows(allow, self._principal, field)
            if self._at is not None:
                rows = self._snapshot.valid_rows(rows, self._at)
            self._rows[key] = rows
            self.nbytes += rows.nbytes
            self._held.check(self.nbytes)
        return self._rows[key]

    def _entities(self, given: list[str | int] | None, field: str) -> list[str | int] | None:
        for at, one in enumerate(given or ()):
            if isinstance(one, str):
                check_most(len(one), f"{field}[{at}]", self._limits, "text_chars", "character")
            elif self._principal.where is not None:
                raise InputError(
                    "unsupported",
                    f"{field}[{at}]",
                    "{field} is {given}, and the key sees only a part of the index; give the entity's name",
                    given=one,
                )
        return given


def _takes_long(given: Sequence[str | QueryIn], snapshot: IndexSnapshot) -> bool:
    """Return whether queries take so long to check and divide that the event loop should not wait for it."""
    passages = snapshot.index.num_passages // _PASSAGES
    work = _OF_QUERY * len(given)
    for one in given:
        if isinstance(one, QueryIn):
            work += 0 if one.entities is None else len(one.entities)
            work += 0 if one.allow is None else passages + _number(one.allow)
    return work > _LONG


def _number(allow: list[str | int] | Mapping[str, Any]) -> int:
    """Return the number of ids of a filter, or of its conditions and their values."""
    if not isinstance(allow, Mapping):
        return len(allow)
    return sum(1 + (len(value) if isinstance(value, list) else 0) for value in allow.values())
