"""Answers to searches as JSON, encoded and sent in parts if they are large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .budget import Held
from .http import JSON, encode
from .schema import HitOut, ResultOut, SearchResponse
from .searches import Answer

#: Hits of an answer, and characters of their texts, up to which the event loop encodes it.
SMALL_HITS, SMALL_CHARS = 1000, 2**18
#: Characters of the texts of hits that are encoded by one call; a hit counts as ``HIT_CHARS`` more.
PART_CHARS, HIT_CHARS = 2**20, 256
#: Bytes that are sent at a time; the next ones follow when the client has read them.
SENT = 2**18


class PartedResponse(Response):
    """A response whose body is sent in parts, as the client reads them.

    Parameters
    ----------
    parts : sequence of bytes-like
    media_type : str
    headers : mapping, optional
    """

    def __init__(self, parts: Sequence[Any], media_type: str, headers: dict[str, str] | None = None) -> None:
        self._parts = [memoryview(part).cast("B") for part in parts]
        self._nbytes = sum(map(len, self._parts))
        self._held: Held | None = None
        made = {**(headers or {}), "content-length": str(self._nbytes)}
        super().__init__(None, headers=made, media_type=media_type)

    def hold(self, held: Held) -> PartedResponse:
        """Hold the bytes of the body until it is sent, and return this response."""
        held.add(self._nbytes)
        self._held = held.share()
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await self._send(send)
        finally:
            if self._held is not None:
                self._held.release()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        gathered, size = [], 0
        for part in self._parts:
            for at in range(0, len(part), SENT):
                piece = part[at : at + SENT]
                gathered.append(piece)
                size += len(piece)
                if size >= SENT:
                    await send({"type": "http.response.body", "body": b"".join(gathered), "more_body": True})
                    gathered, size = [], 0
        await send({"type": "http.response.body", "body": b"".join(gathered)})


def is_large(answer: Answer) -> bool:
    """Return whether an answer takes so long to encode that the event loop should not wait for it."""
    hits = sum(len(one.hits) for one in answer.results)
    if hits > SMALL_HITS or any(one.trace is not None for one in answer.results):
        return True
    return sum(len(hit.text or "") for one in answer.results for hit in one.hits) > SMALL_CHARS


def response_of(answer: Answer) -> Response:
    """Return a small answer as JSON."""
    shown = SearchResponse(answer.results, answer.snapshot.seq, answer.timings)
    return Response(encode(shown), media_type=JSON)


def parted_response_of(answer: Answer) -> PartedResponse:
    """Return a large answer as JSON, the same as that of :func:`response_of`; no call of the encoder takes long."""
    end = encode(SearchResponse([], answer.snapshot.seq, answer.timings))
    parts, comma = [b'{"results":['], b""
    for one in answer.results:
        parts += [comma, *_parts_of(one)]
        comma = b","
    return PartedResponse([*parts, end.removeprefix(b'{"results":[')], JSON)


def _parts_of(result: ResultOut) -> list[bytes]:
    """Return a result in parts of the JSON."""
    parts, comma = [b'{"hits":['], b""
    for hits in _in_parts(result.hits):
        parts += [comma, encode(hits)[1:-1]]
        comma = b","
    rest = encode(ResultOut([], result.trace, result.notes))
    return [*parts, rest.removeprefix(b'{"hits":[')]


def _in_parts(hits: Sequence[HitOut]) -> list[list[HitOut]]:
    """Return hits in parts that are encoded by one call each."""
    parts: list[list[HitOut]] = []
    room = 0
    for hit in hits:
        if room <= 0:
            parts.append([])
            room = PART_CHARS
        parts[-1].append(hit)
        room -= HIT_CHARS + len(hit.text or "")
    return parts
