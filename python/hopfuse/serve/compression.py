"""Compressed bodies: requests for inference, and answers if the configuration says so.

Attacks that guess a secret from the length of a compressed answer (BREACH) need answers with a secret and text of the
attacker's, at requests that the attacker makes the victim's browser send. No answer contains a key, and no browser adds
one to a request by itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Message, Send

from ..errors import InputError
from .config import Limits
from .errors import RefusalError
from .http import unsupported

#: zlib's parameter for each encoding.
WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
LEVEL = 4
#: Bytes that the event loop compresses itself; more are left to a thread.
SMALL = 16384


def decompressed(body: bytes, encoding: str, limits: Limits, most: str) -> bytes:
    """Return the content of a compressed body of a request.

    Parameters
    ----------
    body : bytes
    encoding : str
        The header Content-Encoding.
    limits : Limits
    most : str
        The limit of the content's bytes; no more are made.

    Raises
    ------
    RefusalError
        413: it has more. 415: another encoding.
    InputError
        The body is not in this encoding, or ends early.
    """
    kind = encoding.strip().lower()
    if kind not in WINDOWS:
        raise unsupported("Content-Encoding", encoding, WINDOWS)
    limit = min((most, "body_bytes"), key=lambda name: getattr(limits, name))
    allowed = getattr(limits, limit)
    reader = zlib.decompressobj(WINDOWS[kind])
    problem = ""
    try:
        found = reader.decompress(body, allowed + 1)
    except zlib.error as error:
        found, problem = b"", str(error)
    if len(found) > allowed:
        raise RefusalError(
            "too_large",
            None,
            "the decompressed body has more than {allowed} bytes ({limit} of the server); send fewer queries at a time",
            allowed=allowed,
            limit=f"limits.{limit}",
        )
    if not reader.eof or reader.unused_data:
        problem = problem or ("something follows it" if reader.eof else "it ends early")
        raise InputError("syntax", None, "the body is not valid {encoding}: {error}", encoding=kind, error=problem)
    return found


def accepted(header: str) -> str | None:
    """Return the encoding of an answer that a header Accept-Encoding allows, or None.

    Examples
    --------
    >>> accepted("br, gzip;q=0.5"), accepted("deflate"), accepted("gzip;q=0, *;q=0"), accepted("identity")
    ('gzip', 'deflate', None, None)
    """
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        try:
            weights[name.strip()] = float(weight.partition("=")[2] or 1)
        except ValueError:
            weights[name.strip()] = 0.0
    return next((name for name in WINDOWS if weights.get(name, 0.0) > 0), None)


class CompressedSend:
    """Sends an answer compressed, if it has at least that many bytes; it compresses each part as it is sent.

    Parameters
    ----------
    send : callable
    encoding : str or None
        None if the client accepts none.
    least : int
    in_thread : callable
        Returns what a call returns that takes long.
    """

    def __init__(
        self, send: Send, encoding: str | None, least: int, in_thread: Callable[..., Awaitable[bytes]]
    ) -> None:
        self._send, self._encoding, self._least, self._in_thread = send, encoding, least, in_thread
        self._start: Message | None = None
        self._compressor: Any = None

    async def __call__(self, message: Message) -> None:
        """Send a message of the answer."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._start is not None:
            message = await self._begin(self._start, message)
            self._start = None
        elif self._compressor is not None:
            message = {**message, "body": await self._part(message)}
        await self._send(message)

    async def _begin(self, start: Message, first: Message) -> Message:
        """Send the head, and return the first part."""
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        length = dict(start["headers"]).get(b"content-length", b"0")
        is_encoded = any(name == b"content-encoding" for name, _ in headers)
        if int(length) < self._least or is_encoded:
            await self._send(start)
            return first
        vary = (b"vary", b"Accept-Encoding")
        if self._encoding is None:
            await self._send({**start, "headers": [*start["headers"], vary]})
            return first
        self._compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOWS[self._encoding])
        first = {**first, "body": await self._part(first)}
        headers += [vary, (b"content-encoding", self._encoding.encode())]
        if not first.get("more_body", False):
            headers.append((b"content-length", str(len(first["body"])).encode()))
        await self._send({**start, "headers": headers})
        return first

    async def _part(self, message: Message) -> bytes:
        body, ends = message.get("body", b""), not message.get("more_body", False)
        return await self._in_thread(self._compress, body, ends) if len(body) > SMALL else self._compress(body, ends)

    def _compress(self, body: bytes, ends: bool) -> bytes:
        found: bytes = self._compressor.compress(body) + (self._compressor.flush() if ends else b"")
        return found
