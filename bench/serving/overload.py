"""A long overload, and very many requests. Times are in seconds, memory in MiB."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from .client import Task
from .processes import Server
from .setting import MANY, Setting, open_loop
from .steady import CALLERS, CALLERS_OF_MANY, Side
from .wrk import Bodies

#: Seconds for clients to load their libraries, before all start together.
LOADING = 3.0
#: Health checks per second.
PROBES = 20.0
#: Offered queries, as a multiple of saturation.
TIMES = 4.0
#: Seconds after the end of the overload in which the server is watched.
AFTER = 5.0
#: Latency of a search below which a server counts as recovered.
NORMAL = 0.05
#: Seconds of an overload of single questions.
SHORT = 10.0
#: Share of very many requests after which memory has settled, and seconds of each part.
WARM, PART = 0.1, 10.0
#: Seconds for a server to close the connections of clients that have ended.
CLOSING = 0.5


def overload_of_many(setting: Setting) -> dict[str, Any]:
    """Return the figures of requests of 32 queries at four times saturation."""
    return _overload(setting, setting.many, setting.many_hurried, CALLERS_OF_MANY, MANY, setting.lengths.overload)


def overload_of_one(setting: Setting) -> dict[str, Any]:
    """Return those of requests of one query: refusals and the client take much of the machine."""
    seconds = min(SHORT, setting.lengths.overload)
    return _overload(setting, setting.one, setting.one_hurried, CALLERS, 1, seconds)


def _overload(
    setting: Setting, bodies: Bodies, hurried: Bodies, callers: int, each: int, seconds: float
) -> dict[str, Any]:
    with ExitStack() as stack:
        server = stack.enter_context(setting.hopfuse())
        side = Side(server, bodies, callers, each)
        side.saturated(1.0)
        before = side.saturated(setting.lengths.closed)
        rate, begin = TIMES * before["queries_per_second"] / each, time.time() + LOADING
        at = {"port": server.port, "begin": begin}
        main = stack.enter_context(open_loop(Task(**at, files=hurried.files, rate=rate, seconds=seconds)))
        health = stack.enter_context(
            open_loop(Task(**at, path="/health/live", rate=PROBES, seconds=seconds, even=True))
        )
        searches = Task(
            **at, files=setting.one_hurried.files, rate=PROBES, seconds=seconds + AFTER, even=True, series=True
        )
        probe = stack.enter_context(open_loop(searches))
        time.sleep(max(0.0, begin - time.time()))
        cpu, began = server.cpu(), time.perf_counter()
        with watched_memory(server) as memory:
            counted = main.counted()
        elapsed = time.perf_counter() - began
        used = server.cpu() - cpu
        alive, series = health.counted(), probe.counted()["series"]
    goodput = each * counted["answered_per_second"]
    return {
        "seconds": seconds,
        "offered_queries_per_second": rate * each,
        "saturation": before["queries_per_second"],
        "goodput": goodput,
        "of_saturation": goodput / before["queries_per_second"],
        "statuses": counted["statuses"],
        "answered_latency": counted["latency"],
        "server_cores": used / elapsed,
        "client_cores": counted["client_cpu"] / elapsed,
        "client_late": counted["late"],
        "health": alive["latency"],
        "memory": memory,
        "recovery": recovery(series, seconds),
    }


def recovery(series: dict[str, list[float]], end: float) -> float | None:
    """Return the seconds after the end of the overload until searches are fast again, or None if never.

    Examples
    --------
    >>> series = {"due": [0.9, 1.1, 1.2, 1.3], "latency": [0.9, 0.3, 0.01, 0.01], "status": [429, 200, 200, 200]}
    >>> round(recovery(series, 1.0), 3)
    0.2
    """
    due, latency, status = (np.array(series[key]) for key in ("due", "latency", "status"))
    after = due >= end
    slow = due[after & ~((status == 200) & (latency <= NORMAL))]
    if not len(slow):
        return 0.0
    later = due[due > slow[-1]]
    return float(later[0] - end) if len(later) else None


@contextmanager
def watched_memory(server: Server) -> Iterator[dict[str, Any]]:
    """Measure a server's resident memory while the block runs: after a tenth of the time, at the end, the maximum."""
    seen: list[float] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.25):
            seen.append(server.resident())

    thread, found = threading.Thread(target=look), {}
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()
        if seen:
            found |= {"warm": seen[len(seen) // 10], "end": seen[-1], "largest": max(seen)}


def very_many(setting: Setting) -> dict[str, Any]:
    """Return what a server holds in the course of very many requests without a search, and how much that grows."""
    with setting.still() as server:
        side, done, parts = Side(server, setting.one, CALLERS, 1), 0, []
        while done < setting.lengths.requests:
            counted = side.saturated(min(PART, setting.lengths.closed))
            done += counted["requests"]
            time.sleep(CLOSING)
            parts.append({"requests": done, **server.holds()})
    warm = next(part for part in parts if part["requests"] >= WARM * done)
    growth = {name: parts[-1][name] - warm[name] for name in warm if name != "requests"}
    return {"requests": done, "growth": growth, "parts": parts}
