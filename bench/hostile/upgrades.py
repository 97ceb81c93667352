"""Requests with Upgrade, whose body might be lost, or run as a request."""

from __future__ import annotations

from collections import Counter

from .attacks import Counts, Target, attack, exchange, only

HEADERS = {
    "h2c": ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    "websocket": ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
}


@attack("a hidden request behind Upgrade", only(400))
def hidden_request(target: Target) -> Counts:
    """The body of a POST with Upgrade is a request that would be answered 200; it arrives in a second packet."""
    counts: Counter[str] = Counter()
    while target.goes_on():
        for lines in HEADERS.values():
            body = target.head("GET /health/live", "Connection: close") + b"\r\n"
            lines = (*lines, f"Content-Length: {len(body)}")
            first = target.head("POST /v1/search", *lines, keyed=True) + b"\r\n"
            last = target.head("GET /nowhere", "Connection: close") + b"\r\n"
            answers = exchange(target, first, body + last).split(b"HTTP/1.1 ")[1:]
            counts.update(one[:3].decode() for one in answers if not one.startswith(b"404"))
    return counts
