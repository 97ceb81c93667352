"""A small index, and a real server over it: uvicorn on a free port of loopback, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import hopfuse as hf
import numpy as np

T = TypeVar("T")

DIM = 8
CITIES = ["Ankara", "Bergen", "Cusco", "Dakar", "Erfurt", "Fes", "Graz", "Hanoi", "Izmir", "Jaipur", "Kyoto", "Lima"]
TEXTS = [
    f"{a} lies far from {b}, says passage {at}."
    for at, (a, b) in enumerate(zip(CITIES, CITIES[5:] + CITIES[:5], strict=True))
]


class Letters:
    """An encoder that any machine has: how often letters occur, each text by itself."""

    name, dim, normalize = "letters", DIM, False

    def encode_queries(self, texts: list[str]) -> np.ndarray:
        return np.array([[1 + text.lower().count(one) for one in "aeiounrs"] for text in texts], np.float32)

    encode_passages = encode_queries


def small_index(ids: str | int = "p", extra: int = 0) -> hf.Index:
    """Twelve passages that name two cities each; ``extra`` passages more, of the first city alone.

    Ids are a prefix and the row's number, or ascend from an integer.
    """
    texts = [*TEXTS, *(f"{CITIES[0]} again, {at} times." for at in range(extra))]
    count = len(texts)
    edges = [(at, count + CITIES.index(city)) for at, text in enumerate(texts) for city in CITIES if city in text]
    return hf.Index.build(
        passages=[
            {
                "id": ids + at if isinstance(ids, int) else f"{ids}{at}",
                "title": f"No. {at}",
                "text": text,
                "metadata": {"tenant": "ab"[at % 2], "number": at},
            }
            for at, text in enumerate(texts)
        ],
        vectors=Letters().encode_passages(texts),
        entities=CITIES,
        graph=[{"src": a, "dst": b, "type": "context"} for a, b in edges],
        encoder=Letters(),
        metric="cosine",
    )


#: The encoder of the small index.
ENCODERS = {"cities": Letters()}


def save(folder: Path, **options: Any) -> str:
    small_index(**options).save(folder)
    return str(folder)


def configured(path: str, text: str = "", **changes: Any) -> Any:
    """The configuration of a server over one index; without another timeout, requests have the longest one."""
    import msgspec
    from hopfuse.serve import ServeConfig

    config = ServeConfig.read(text, {"port": 0, "threads": 1, "indexes": {"cities": {"path": path}}, **changes})
    usual = type(config.limits)()
    if config.limits.timeout_ms != usual.timeout_ms:
        return config
    limits = msgspec.structs.replace(config.limits, timeout_ms=config.limits.max_timeout_ms)
    return msgspec.structs.replace(config, limits=limits)


def until(found: Callable[[], T], seconds: float = 600.0) -> T:
    """Return what ``found`` returns once it is true."""
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, "what is waited for does not happen"
        time.sleep(0.005)
    return value


def ready_status(url: str) -> tuple[int, str]:
    """The HTTP status of ``/health/ready``, and the server's own, such as ``starting`` and ``failed``."""
    try:
        with urllib.request.urlopen(f"{url}/health/ready") as answer:
            return answer.status, "ok"
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["error"]["values"].get("status", "")


class NotReadyError(RuntimeError):
    """A server that did not get ready, with its status and its log."""

    def __init__(self, status: str, log: list[str]) -> None:
        super().__init__("\n".join([f"the server is {status}; its log:", *log]))
        self.status, self.log = status, log


class Kept(logging.Handler):
    """The log's lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextlib.contextmanager
def running(config: Any, encoders: Any = None) -> Iterator[str]:
    """The server's address, while it runs; a server that does not get ready is an error with its status and log."""
    from hopfuse.serve import make_server

    log, kept = logging.getLogger("hopfuse.serve"), Kept()
    server = make_server(config, dict.fromkeys(config.indexes, Letters()) if encoders is None else encoders)
    thread = threading.Thread(target=server.run)
    log.addHandler(kept)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise NotReadyError("not started", kept.lines)
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        while (found := ready_status(url))[0] != 200:
            if found[1] not in ("starting", "ok"):
                raise NotReadyError(found[1], kept.lines)
            time.sleep(0.005)
        log.removeHandler(kept)
        yield url
    finally:
        log.removeHandler(kept)
        server.should_exit = True
        thread.join()


def within(config: Any, test: Callable[[Any], Awaitable[None]]) -> None:
    """Run a coroutine function with a service, without HTTP."""
    from hopfuse.serve import Service

    async def run() -> None:
        service = Service(config, ENCODERS)
        await service.start()
        try:
            await test(service)
        finally:
            await service.stop()

    asyncio.run(run())
