"""Bodies in and answers out, with limits; what all routes share."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from .batcher import retry_after
from .config import Limits
from .errors import RefusalError

JSON = "application/json"
_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: plain(value))


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request.

    Raises
    ------
    RefusalError
        413: longer than allowed. 408: it did not arrive in time.
    """
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > limits.body_bytes:
        raise _too_large(limits)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise RefusalError(499, "gone", "the client has left")
                part = message.get("body", b"")
                size += len(part)
                if size > limits.body_bytes:
                    raise _too_large(limits)
                parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise RefusalError(
            408, "slow", f"the body did not arrive within {limits.body_seconds:g} s; send it without pauses"
        ) from None


def _too_large(limits: Limits) -> RefusalError:
    return RefusalError(
        413, "too_large", f"the body has more than {limits.body_bytes} bytes; send fewer queries at a time"
    )


def check_content_type(request: Request, allowed: tuple[str, ...] = (JSON,)) -> str:
    """Return the body's type; a request without one, and curl's default, are taken as JSON's."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in ("", "application/x-www-form-urlencoded"):
        return JSON
    if given not in allowed:
        raise RefusalError(415, "unsupported", f"Content-Type is {given[:100]!r}; allowed: {', '.join(allowed)}")
    return given


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON."""
    return Response(_ENCODER.encode(value), status, headers, media_type=JSON)


def refused(refusal: RefusalError) -> Response:
    """Return a refusal as JSON."""
    headers = None if refusal.retry_after is None else {"Retry-After": retry_after(refusal.retry_after)}
    return json_response(refusal.body, refusal.status, headers)


def plain(value: Any) -> Any:
    """Return NumPy's values as Python's, and other sequences as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "_asdict"):
        return value._asdict()
    return list(value)
