"""Decode and check the bodies of requests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import msgspec

from ..errors import InputError
from .config import Limits
from .errors import check_most, invalid_value
from .keys import Principal
from .schema import EdgeIn, EntityIn, Outline, PassageIn, PassagesRequest, QueryIn, SearchRequest
from .searches import Search
from .service import Service
from .snapshots import Query, Snapshot
from .vectors import vector_of

#: Bytes of a large body. At most one is decoded in a turn of the event loop, because all requests wait meanwhile.
LARGE = 32768
_DECODER = msgspec.json.Decoder(SearchRequest)
_OUTLINE = msgspec.json.Decoder(Outline)
_CHANGES = msgspec.json.Decoder(PassagesRequest)
#: Types of the elements of lists of a body.
_PARTS = {"queries": QueryIn, "passages": PassageIn, "entities": EntityIn, "edges": EdgeIn}


async def read_search(service: Service, body: bytes, principal: Principal) -> Search:
    """Return the search in a JSON body.

    Raises
    ------
    RefusalError
        400 with the field; 404 if the index does not exist; 504 if it does not reach the seq in time.
    """
    arrived = time.monotonic()
    is_large = len(body) > LARGE
    async with service.turn if is_large else contextlib.nullcontext():
        if service.batcher.is_busy or b'"timeout_ms"' in body:  # what will be refused need not be decoded
            outline = decode(_OUTLINE, body)
            service.check_deadline(principal, len(outline.queries), outline.timeout_ms, arrived)
        asked = decode(_DECODER, body)
        if is_large:
            await asyncio.sleep(0)
    snapshot = await service.snapshot_at(asked.index, principal, asked.at_least, asked.timeout_ms)
    limits = service.config.limits
    check_most(len(asked.queries), "queries", limits.queries)
    return Search(
        snapshot=snapshot,
        queries=[
            read_query(snapshot, one, principal, f"queries[{at}]", limits) for at, one in enumerate(asked.queries)
        ],
        k=asked.k,
        recipe=asked.recipe,
        options=asked.options,
        timeout_ms=asked.timeout_ms,
        trace=asked.trace,
        strict=asked.strict,
        per_document=asked.per_document,
        fields=frozenset(asked.fields),
        principal=principal,
        nbytes=len(body),
        arrived=arrived,
    )


def read_change(body: bytes) -> PassagesRequest:
    """Return the change in a JSON body; a refusal names the field."""
    asked: PassagesRequest = decode(_CHANGES, body)
    return asked


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode a JSON body; a refusal names the field."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        path = str(error).partition(" - at `$")[2].rstrip("`").lstrip(".")
        part = path.partition("[")[0]
        holder = decoder.type if part not in _PARTS or path.rpartition(".")[2] == part else _PARTS[part]
        raise invalid_value(error, holder, path, _plain(body)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            "syntax", None, "the body is not valid JSON: {error}; send one JSON object in UTF-8", error=error
        ) from None


def _plain(body: Any) -> Any:
    """Return a JSON body as plain values; None if it is nested too deeply, or not UTF-8."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read_query(
    snapshot: Snapshot, given: str | QueryIn, principal: Principal, field: str, limits: Limits, vector: Any = None
) -> Query:
    """Return one checked query, restricted to the passages that the key sees; ``vector`` has been checked already."""
    if isinstance(given, str):
        check_most(len(given), f"{field}.text", limits.text_chars, "character")
        return Query(given, allow=snapshot.rows(None, principal, f"{field}.allow"))
    if given.text is not None:
        check_most(len(given.text), f"{field}.text", limits.text_chars, "character")
    if given.allow is not None:
        check_most(len(given.allow), f"{field}.allow", limits.allow)
    return Query(
        given.text,
        vector_of(given, field) if vector is None else vector,
        _entities(given.entities, f"{field}.entities", limits, sees_all=principal.where is None),
        snapshot.rows(given.allow, principal, f"{field}.allow"),
    )


def _entities(given: list[str | int] | None, field: str, limits: Limits, *, sees_all: bool) -> list[str | int] | None:
    if given is None:
        return None
    check_most(len(given), field, limits.entities)
    for at, one in enumerate(given):
        place = f"{field}[{at}]"
        if isinstance(one, str):
            check_most(len(one), place, limits.text_chars, "character")
        elif not sees_all:
            raise InputError(
                "unsupported",
                place,
                "{field} is {given}, and the key sees only a part of the index; give the entity's name",
                given=one,
            )
    return given
