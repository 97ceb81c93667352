"""Targets of the server: bodies of requests as JSON, Arrow and tensors, and its configuration.

The application is asked in this process, without a socket; ``tests/serve/forged.py`` sends requests by the wire.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.mutators import json_values
from fuzz.targets import Plain, Target
from serve.forged import (
    ARROW,
    BINARY,
    HEADER,
    INFER,
    JSON,
    LIMITS,
    PASSAGES,
    RETRIEVAL,
    SEARCH,
    Answered,
    Request,
    fault,
)
from serve.served import Letters, configured, save

#: It warns of each body that is refused.
LOGGER = logging.getLogger("hopfuse.serve")


class Door:
    """The application over a small index, with an event loop of its own, until the process ends."""

    def __init__(self, *, writable: bool) -> None:
        from hopfuse.serve import Service, make_app

        LOGGER.setLevel(logging.CRITICAL)
        self._folder = Path(tempfile.mkdtemp(prefix="hopfuse-fuzz-"))
        path = save(self._folder / "index")
        config = configured(path, LIMITS, indexes={"cities": {"path": path, "writable": writable}})
        self._app = make_app(Service(config, {"cities": Letters()}), start_first=True)
        self._loop = asyncio.new_event_loop()
        self._living = self._app.router.lifespan_context(self._app)
        self._loop.run_until_complete(self._living.__aenter__())

    def close(self) -> None:
        """Stop the application."""
        self._loop.run_until_complete(self._living.__aexit__(None, None, None))
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def ask(self, request: Request) -> Answered:
        """Return the answer to a request."""
        return self._loop.run_until_complete(asyncio.wait_for(self._ask(request), 60))

    async def _ask(self, request: Request) -> Answered:
        given = [{"type": "http.request", "body": request.body, "more_body": False}]
        status, parts, finished = 0, list[bytes](), asyncio.Event()

        async def receive() -> dict[str, Any]:
            if given:
                return given.pop()
            await finished.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        headers = {"host": "localhost", "content-length": str(len(request.body)), **request.headers}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": request.method,
            "path": request.path, "raw_path": request.path.encode(), "query_string": b"", "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        await self._app(scope, receive, send)
        finished.set()
        return Answered(status, b"".join(parts))


_DOORS: dict[bool, Door] = {}


def door(*, writable: bool = False) -> Door:
    """Return the application, which is made when it is first asked."""
    if writable not in _DOORS:
        _DOORS[writable] = Door(writable=writable)
    return _DOORS[writable]


@atexit.register
def close_doors() -> None:
    """Stop the applications."""
    while _DOORS:
        _DOORS.popitem()[1].close()
    LOGGER.setLevel(logging.NOTSET)


def body_of(path: str, kind: str) -> Callable[[bytes, Path], object]:
    """Return a reader that sends the input as a body of a type to a path."""

    def read(data: bytes, folder: Path) -> object:
        return _answered(door(), Request("POST", path, data, {"Content-Type": kind}))

    return read


def change(data: bytes, folder: Path) -> object:
    """Send the input as a change of an index; one that was made is taken back with its server."""
    answered = _answered(door(writable=True), Request("POST", "/v1/passages", data, {"Content-Type": JSON}))
    if answered.status == 200:
        _DOORS.pop(True).close()
    return answered


def infer(data: bytes, folder: Path) -> object:
    """Send tensors: the first line is the length of the JSON that begins the rest."""
    length, _, body = data.partition(b"\n")
    headers = {"Content-Type": BINARY, HEADER: length.decode("latin-1").strip("\r\n")}
    return _answered(door(), Request("POST", "/v2/models/cities/infer", body, headers))


def _answered(asked: Door, request: Request) -> Answered:
    found = asked.ask(request)
    wrong = fault(request, found)
    assert not wrong, wrong
    return found


def settings(data: bytes, folder: Path) -> object:
    """Read a server's configuration, from text and from a file."""
    from hopfuse.serve import ServeConfig

    return ServeConfig.read(data.decode(errors="replace"))


# ---- Changes ---------------------------------------------------------------------------------------------------------


def arrow_stream(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Make another stream of queries half of the time, else change bytes."""
    from serve.forged import stream

    found = stream(draw) if draw.random() < 0.3 else data
    return found[:most] if draw.random() < 0.2 else plain(found, most)


def tensors(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Make another request with tensors a third of the time, else change the JSON or the bytes."""
    from serve.forged import binary_request

    if draw.random() < 0.3:
        made = binary_request(draw)
        return (made.headers[HEADER].encode("utf-8", "replace") + b"\n" + made.body)[:most]
    line, _, body = data.partition(b"\n")
    if draw.random() < 0.5 or not line.isdigit():
        return plain(data, most)
    head = json_values(body[: int(line)], most, draw, plain)
    return (str(len(head)).encode() + b"\n" + head + body[int(line) :])[:most]


@cache
def seeds() -> dict[str, list[bytes]]:
    """Bodies that the server answers."""
    from serve.forged import stream

    bare = {name: value for name, value in PASSAGES.items() if name not in ("merge", "edges")}
    draw, found = random.Random(7), list[bytes]()
    while len(found) < 3:
        made = stream(draw)
        if len(made) < 2500 and door().ask(Request("POST", "/v1/search", made, {"Content-Type": ARROW})).status == 200:
            found.append(made)
    binary = []
    while not binary:
        asked = tensors(b"", 4096, random.Random(draw.random()), lambda data, most: b"0\n")
        length, _, body = asked.partition(b"\n")
        headers = {"Content-Type": BINARY, HEADER: length.decode("latin-1")}
        if door().ask(Request("POST", "/v2/models/cities/infer", body, headers)).status == 200:
            binary.append(asked)
    return {
        "search-json": [json.dumps(SEARCH).encode(), b'{"queries": ["Who?"]}'],
        "passages-json": [json.dumps(PASSAGES).encode(), json.dumps(bare).encode()],
        "retrieval-json": [json.dumps(RETRIEVAL).encode()],
        "infer-json": [json.dumps(INFER).encode()],
        "infer-binary": binary,
        "search-arrow": found,
        "config-toml": [
            f'port = 1\n[indexes.cities]\npath = "a"\nwritable = true\n[keys.team]\nsha256 = "{"0" * 64}"\n'
            f'rights = ["read"]\nexpires = 2030-01-01T00:00:00Z\n{LIMITS}'.encode()
        ],
    }


WORDS = ("[indexes.a]", "[keys.b]", "[limits]", "path", "sha256", "rights")
TARGETS = (
    Target("search-json", body_of("/v1/search", JSON), 3_000, json_values, tuple(SEARCH)),
    Target("passages-json", change, 800, json_values, tuple(PASSAGES)),
    Target("retrieval-json", body_of("/retrieval", JSON), 4_000, json_values, tuple(RETRIEVAL)),
    Target("infer-json", body_of("/v2/models/cities/infer", JSON), 4_000, json_values, (*INFER, "FP32", "BYTES")),
    Target("infer-binary", infer, 4_000, tensors, (*INFER, "FP32", "BYTES", "binary_data_size")),
    Target("search-arrow", body_of("/v1/search", ARROW), 4_000, arrow_stream, ("hopfuse", "text", "vector")),
    Target("config-toml", settings, 12_000, None, WORDS),
)
