"""Bodies of requests and responses, with limits, and clients that leave before they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..errors import HopfuseError
from .batcher import retry_after
from .budget import ByteBudget
from .config import Limits, is_loopback
from .errors import RefusalError, body_of, gone_away, status_of
from .keys import Principal, client_of

JSON = "application/json"
#: Keeps browsers from taking an answer for another type than it says.
NOSNIFF = (b"x-content-type-options", b"nosniff")
_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: plain(value))


class BodyReader:
    """The body of a request, as an asynchronous context manager, until the request is answered.

    Its bytes are counted as they arrive, and until the block ends. If the client leaves meanwhile, what the block waits
    for is cancelled.

    Parameters
    ----------
    request : Request
        ``request.state.held`` gets the account of its bytes.
    budget : ByteBudget
    limits : Limits
    most : str
        Name of the limit of the body's bytes.
    admit : callable, optional
        Called before the body is read, and may refuse it.
    encodings : iterable of str
        Encodings of the body (Content-Encoding) that the caller undoes.

    Raises
    ------
    RefusalError
        413: it is too long. 408: it did not arrive in time. 415: it is encoded. 429: there is no room for it. 499: the
        client has left. Or that of ``admit``.
    """

    def __init__(
        self,
        request: Request,
        budget: ByteBudget,
        limits: Limits,
        most: str = "json_bytes",
        admit: Callable[[], None] = lambda: None,
        encodings: Iterable[str] = (),
    ) -> None:
        self._request, self._budget, self._limits, self._admit = request, budget, limits, admit
        self._encodings = encodings
        self._limit = "body_bytes" if limits.body_bytes < getattr(limits, most) else most
        self._watching = _Watching(request.receive)

    async def __aenter__(self) -> bytes:
        request = self._request
        self._held = request.state.held = self._budget.hold(owner_of(request))
        try:
            body = await self._read(getattr(self._limits, self._limit))
        except BaseException:
            self._held.release()
            raise
        self._watching.start()
        return body

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.release()
        self._watching.end(kind)

    async def _read(self, most: int) -> bytes:
        check_encoding(self._request, self._encodings)
        stated = self._request.headers.get("content-length", "")
        length = int(stated) if stated.isdecimal() and len(stated) < 20 else 0
        if length > most:
            raise self._too_large()
        self._admit()
        self._held.check(length)
        parts = []
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await self._request.receive()
                    if message["type"] == "http.disconnect":
                        raise gone_away()
                    part = message.get("body", b"")
                    if self._held.nbytes + len(part) > most:
                        raise self._too_large()
                    self._held.add(len(part))
                    parts.append(part)
                    if not message.get("more_body", False):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            raise RefusalError(
                "slow",
                None,
                "the body did not arrive within {allowed:g} s; send it faster",
                allowed=self._limits.body_seconds,
            ) from None

    def _too_large(self) -> RefusalError:
        if self._limit == "body_bytes":
            return RefusalError(
                "too_large",
                None,
                "the body has more than {allowed} bytes ({limit} of the server); send fewer queries at a time",
                allowed=self._limits.body_bytes,
                limit="limits.body_bytes",
            )
        return RefusalError(
            "too_large",
            None,
            "the body has more than {allowed} bytes of JSON ({limit} of the server); send less at a time, vectors as "
            "vector_base64, or a search as an Arrow stream, which may have {most} bytes",
            allowed=getattr(self._limits, self._limit),
            limit=f"limits.{self._limit}",
            most=self._limits.body_bytes,
        )


def owner_of(request: Request) -> str:
    """Return who sends a request, for limits of one key: the key's name; without keys, the client's address."""
    principal: Principal | None = getattr(request.state, "principal", None)
    name = "" if principal is None else principal.name
    return name or ("" if request.client is None else client_of(request.client.host))


def check_origin(request: Request, origins: tuple[str, ...], *, local: bool, keyed: bool) -> None:
    """Refuse requests that a page of another site makes a browser send.

    Parameters
    ----------
    request : Request
    origins : sequence of str
        Origins of allowed pages.
    local : bool
        The server listens on loopback without keys. A request with another name in Host then comes from a page whose
        name was resolved to this machine (DNS rebinding).
    keyed : bool
        The server has keys, which no browser sends by itself. So a browser is believed that says (Sec-Fetch-Site) that
        the page comes from where it sends its request, even if a proxy in between replaced Host.
    """
    host = request.headers.get("host", "")
    if local and not _is_local(host):
        raise RefusalError("forbidden", "Host", "{field} is not this machine; use localhost")
    origin = request.headers.get("origin")
    if origin is None or origin in origins or origin.partition("://")[2] == host:
        return
    if not (keyed and request.headers.get("sec-fetch-site") == "same-origin"):
        raise RefusalError(
            "forbidden",
            "Origin",
            "{field} is another site than the request's Host, {allowed!r}; add it to the server's origins to allow it, "
            "or let the proxy in front of the server pass on Host",
            allowed=host[:100],
        )


@lru_cache(64)
def _is_local(host: str) -> bool:
    """Return whether a host, with or without a port, is a loopback address."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def check_content_type(request: Request, allowed: tuple[str, ...] = (JSON,)) -> str:
    """Return the body's type; no type, and curl's default, count as JSON."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in ("", "application/x-www-form-urlencoded"):
        return JSON
    if given not in allowed:
        raise unsupported("Content-Type", given, allowed)
    return given


def check_encoding(request: Request, encodings: Iterable[str] = ()) -> None:
    """Refuse a body that is compressed or encoded otherwise, except by ``encodings``."""
    for name, allowed in (("content-encoding", ("identity", *encodings)), ("transfer-encoding", ("chunked",))):
        given = request.headers.get(name, allowed[0]).strip().lower()
        if given not in allowed:
            raise unsupported(name.title(), given, (*allowed, "or no such header"))


def unsupported(header: str, given: str, allowed: Iterable[str]) -> RefusalError:
    """Return the refusal of a body of another type or encoding than a route takes."""
    return RefusalError(
        "unsupported", header, "{field} is {given!r}; allowed: {allowed}", given=given[:100], allowed=", ".join(allowed)
    )


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response."""
    response = Response(encode(value), status, headers, media_type=JSON)
    response.raw_headers.append(NOSNIFF)
    return response


def encode(value: Any) -> bytes:
    """Return a value as JSON."""
    return _ENCODER.encode(value)


def refused(error: HopfuseError, body: Any = None) -> Response:
    """Return an error as a JSON response, optionally with another body."""
    status, wait = status_of(error), getattr(error, "retry_after", None)
    headers = None if wait is None else {"Retry-After": retry_after(wait)}
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    return json_response(body_of(error) if body is None else body, status, headers)


def plain(value: Any) -> Any:
    """Return NumPy values as Python's, named tuples as dicts, and other iterables as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "_asdict"):
        return value._asdict()
    return list(value)


# ---- Clients that leave ----------------------------------------------------------------------------------------------


#: Seconds after which a task starts to watch the client of a request.
_PATIENCE = 0.1


class _Watching:
    """Cancels what a block waits for when the client leaves; the block then ends with the refusal "gone".

    The client is watched only after a while: most requests are answered before, and a task costs time.

    Parameters
    ----------
    watch : callable
        A coroutine function that returns when the client has left.
    """

    def __init__(self, watch: Callable[[], Awaitable[Any]]) -> None:
        self._watch = watch
        self._left = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch from now on, for the current task."""
        waits = asyncio.current_task()
        assert waits is not None
        self._waits: asyncio.Task[Any] | None = waits
        self._before = waits.cancelling()
        self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._start)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self._watch()
        if self._waits is not None:
            self._left = True
            self._waits.cancel()

    def end(self, kind: type[BaseException] | None = None) -> None:
        """Stop watching; ``kind`` is the exception by which the block ends.

        Raises
        ------
        RefusalError
            The client has left.
        """
        waits, self._waits = self._waits, None  # with its exception, the request would be in a cycle
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        assert waits is not None
        if self._left and waits.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise gone_away() from None

    def __enter__(self) -> _Watching:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind)
