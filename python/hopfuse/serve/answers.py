"""Responses to searches by any protocol: encoded and sent in parts, and counted until the client has read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .budget import Held
from .decoding import on_desk
from .found import HitReader, QueryRanking
from .http import JSON, encode
from .schema import ResultOut, SearchResponse
from .searches import SearchAnswer
from .service import Service

#: Bytes that are sent at a time; the next ones follow when the client has read them.
SENT = 2**18
#: Bytes that a connection takes at once, whether or not its client reads (asyncio's and uvloop's high-water mark).
TAKEN = 2**16


class PartedResponse(Response):
    """A response whose body is sent in parts, as the client reads them.

    Parameters
    ----------
    parts : sequence of bytes-like
    media_type : str, optional
    headers : mapping, optional
    status : int
    """

    def __init__(
        self,
        parts: Sequence[Any],
        media_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> None:
        self._parts = [memoryview(part).cast("B") for part in parts]
        self._nbytes = sum(map(len, self._parts))
        self._held: Held | None = None
        made = {**(headers or {}), "content-length": str(self._nbytes)}
        super().__init__(None, status, made, media_type)

    def hold(self, held: Held, counted: int = 0) -> PartedResponse:
        """Hold the bytes of the body until the client has read them, and return this response.

        What a connection takes at once is not counted: the limits of connections bound it. ``counted`` is what is held
        for the body already.

        Raises
        ------
        HopfuseError
            See :meth:`Held.add`.
        """
        is_counted = self._nbytes > TAKEN
        held.correct(counted, self._nbytes if is_counted else 0)
        if is_counted:
            self._held = held.share()
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._nbytes <= TAKEN:
                await send({"type": "http.response.body", "body": b"".join(self._parts)})
                return
            for body in self._bodies():
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b""})  # once the client has read the last part
        finally:
            self._parts = []
            if self._held is not None:
                self._held.release()

    def _bodies(self) -> Iterator[bytes]:
        """Yield what is sent at a time."""
        gathered, size = list[memoryview](), 0
        for part in self._parts:
            for at in range(0, len(part), SENT):
                piece = part[at : at + SENT]
                gathered.append(piece)
                size += len(piece)
                if size >= SENT:
                    yield b"".join(gathered)
                    gathered, size = [], 0
        if gathered:
            yield b"".join(gathered)


async def respond(
    service: Service, held: Held, answer: SearchAnswer, write: Callable[[SearchAnswer], PartedResponse]
) -> PartedResponse:
    """Return an answer in the form of a protocol, whose bytes are counted until the client has read them.

    They are counted before the passages of a large answer are read.

    Parameters
    ----------
    service : Service
    held : Held
        The account of the request's bytes.
    answer : SearchAnswer
    write : callable
        Returns the response; a large one is made on a thread. No single call in it should take long.

    Raises
    ------
    HopfuseError
        There is no room for the bytes; see :meth:`Held.add`.
    """
    counted = counted_of(answer)
    held.add(counted)
    return (await on_desk(service, held, answer.is_large, write, answer)).hold(held, counted)


def counted_of(answer: SearchAnswer) -> int:
    """Return the bytes that are counted for an answer before its passages are read."""
    return answer.nbytes if answer.nbytes > TAKEN else 0


def search_response(answer: SearchAnswer) -> PartedResponse:
    """Return an answer of ``/v1/search`` as JSON."""
    if not answer.is_large:
        return PartedResponse([encode(SearchResponse(answer.results, answer.snapshot.seq, answer.timings))], JSON)
    shown = SearchResponse([], answer.snapshot.seq, answer.timings)
    return PartedResponse(in_parts(shown, (_parts_of(answer.reader, one) for one in answer.found)), JSON)


def in_parts(shown: Any, entries: Iterable[Sequence[bytes]]) -> list[bytes]:
    """Return an object as JSON in parts.

    Parameters
    ----------
    shown : Struct
        Its first field is an empty list.
    entries : iterable of sequences of bytes
        The entries of that list as JSON: one or, with commas, several, each time in one or more parts.
    """
    whole = encode(shown)
    begin = whole.index(b"[") + 1
    parts, comma = [whole[:begin]], b""
    for one in entries:
        parts += [comma, *one]
        comma = b","
    return [*parts, whole[begin:]]


def _parts_of(reader: HitReader, found: QueryRanking) -> list[bytes]:
    """Return a result as JSON in parts."""
    rest = ResultOut([], found.trace, found.notes)
    return in_parts(rest, ([encode(hits)[1:-1]] for hits in reader.runs(found)))
