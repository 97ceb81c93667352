"""Bodies of requests and responses, with limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..errors import HopfuseError
from .batcher import retry_after
from .config import Limits, is_loopback
from .errors import RefusalError, body_of, gone_away, status_of

JSON = "application/json"
_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: plain(value))


async def read_body(request: Request, limits: Limits, admit: Callable[[int], None] = lambda nbytes: None) -> bytes:
    """Return the body of a request.

    Parameters
    ----------
    request : Request
    limits : Limits
    admit : callable, optional
        ``admit(nbytes)`` is called with Content-Length, 0 if there is none, before the body is read, and may refuse it.

    Raises
    ------
    RefusalError
        413: it is too long. 408: it did not arrive in time. Or that of ``admit``.
    """
    stated = request.headers.get("content-length", "")
    length = int(stated) if stated.isdecimal() else 0
    if length > limits.body_bytes:
        raise _too_large(limits)
    admit(length)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise gone_away()
                part = message.get("body", b"")
                size += len(part)
                if size > limits.body_bytes:
                    raise _too_large(limits)
                parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise RefusalError(
            "slow", None, "the body did not arrive within {allowed:g} s; send it faster", allowed=limits.body_seconds
        ) from None


def _too_large(limits: Limits) -> RefusalError:
    return RefusalError(
        "too_large",
        None,
        "the body has more than {allowed} bytes; send fewer queries at a time",
        allowed=limits.body_bytes,
    )


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


def unsupported(header: str, given: str, allowed: Iterable[str]) -> RefusalError:
    """Return the refusal of a body of another type or encoding than a route takes."""
    return RefusalError(
        "unsupported", header, "{field} is {given!r}; allowed: {allowed}", given=given[:100], allowed=", ".join(allowed)
    )


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(encode(value), status, headers, media_type=JSON)


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
