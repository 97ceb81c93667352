"""Servers under a steady load. Each function runs servers and clients, and returns figures; times are in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..errors import GateError, UnavailableError
from .answers import check_peer
from .client import Task
from .processes import Server
from .setting import ARROW_ROWS, REFUSING_SECONDS, Setting, open_loop
from .wrk import Bodies, closed

#: Connections that saturate a server, with one question per request and with many.
CALLERS, CALLERS_OF_MANY = 64, 8
#: Batch sizes of the library's calls; the fastest is the upper limit of any server.
LIBRARY_BATCHES = (32, 64, 256)


def throughput(setting: Setting) -> dict[str, Any]:
    """Return the queries per second at saturation of each server and of the library, in turns."""
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        ours = stack.enter_context(setting.hopfuse())
        sides = {"json": Side(ours, setting.one, CALLERS, 1)}
        try:
            sides["arrow"] = Side(ours, setting.arrow, CALLERS_OF_MANY, ARROW_ROWS)
        except UnavailableError as reason:
            skipped["arrow"] = str(reason)
        for name, start in (("fastapi", setting.fastapi), ("mosec", setting.mosec)):
            try:
                server = stack.enter_context(start())
            except UnavailableError as reason:
                skipped[name] = str(reason)
                continue
            check_peer(setting, server)
            sides[name] = Side(server, setting.one, CALLERS, 1)
        for side in sides.values():
            side.saturated(1.0)
        library, turns = [setting.library(*LIBRARY_BATCHES)], []
        for _ in range(setting.lengths.turns):
            turns.append({name: side.saturated(setting.lengths.closed) for name, side in sides.items()})
            library.append(setting.library(*LIBRARY_BATCHES))
    return {"skipped": skipped, "library": library, **compared(library, turns)}


def compared(library: Sequence[dict[str, Any]], turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over the turns; each turn's limit is the mean of the library's best rates before and after it."""
    best = [max(one["queries_per_second"] for one in turn.values()) for turn in library]
    limits = [(before + after) / 2 for before, after in pairwise(best)]
    found: dict[str, Any] = {"limit": statistics.median(best)}
    for name in turns[0]:
        rates = [turn[name]["queries_per_second"] for turn in turns]
        json = [turn["json"]["queries_per_second"] for turn in turns]
        found[name] = {
            "queries_per_second": statistics.median(rates),
            "of_library": _median_ratio(rates, limits),
            "json_of_it": _median_ratio(json, rates),
            "turns": [turn[name] for turn in turns],
        }
    return found


def _median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


@dataclass(frozen=True)
class Side:
    """A server and its load: the number of callers, and ``each``, the queries in a request."""

    server: Server
    bodies: Bodies
    callers: int
    each: int

    def saturated(self, seconds: float) -> dict[str, Any]:
        """Return its figures in a closed loop, with the CPU per query."""
        cpu = self.server.cpu()
        counted = closed(self.server.url, self.bodies, self.callers, seconds)
        used, queries = self.server.cpu() - cpu, self.each * (counted["requests"] - counted["refused"])
        return {
            "queries_per_second": queries / counted["seconds"],
            "server_cpu_per_query": used / queries if queries else None,
            "server_cores": used / counted["seconds"],
            "client_cores": counted["client_cpu"] / counted["seconds"],
            **{key: counted[key] for key in ("p50", "p99", "requests", "refused", "lost")},
        }


def one_caller(setting: Setting) -> dict[str, Any]:
    """Return the latency of one caller, and of the library's calls with one query, in turns."""
    served, alone = [], []
    with setting.hopfuse() as server:
        closed(server.url, setting.one, 1, 1.0)
        for _ in range(setting.lengths.turns):
            alone.append(setting.library(1)["1"]["call"]["median"])
            served.append(closed(server.url, setting.one, 1, setting.lengths.closed))
        alone.append(setting.library(1)["1"]["call"]["median"])
    p50, own = statistics.median(one["p50"] for one in served), statistics.median(alone)
    return {"p50": p50, "p99": statistics.median(one["p99"] for one in served), "library_p50": own, "extra": p50 - own}


def open_half(setting: Setting) -> dict[str, Any]:
    """Return the latencies at half of saturation, of independent callers."""
    with setting.hopfuse() as server:
        side = Side(server, setting.one, CALLERS, 1)
        side.saturated(1.0)
        saturation = side.saturated(setting.lengths.closed)["queries_per_second"]
        alone = setting.library(1)["1"]["call"]["median"]
        files, seconds = setting.one.files, setting.lengths.open
        with open_loop(Task(port=server.port, files=files, rate=saturation / 2, seconds=seconds)) as loop:
            counted = loop.counted()
    return {"saturation": saturation, "rate": saturation / 2, "library_p50": alone, "seconds": seconds, **counted}


def without_search(setting: Setting) -> dict[str, Any]:
    """Return the CPU of a request without a search, and of one that is refused at its arrival."""
    with setting.still() as server:
        side = Side(server, setting.one, CALLERS, 1)
        side.saturated(1.0)
        answered = side.saturated(setting.lengths.closed)
    with setting.still(REFUSING_SECONDS) as server:
        cpu = server.cpu()
        refused = closed(server.url, setting.refused, CALLERS, setting.lengths.closed)
        used = server.cpu() - cpu
    if refused["refused"] < refused["requests"]:
        raise GateError(f"of {refused['requests']} requests that cannot be answered, {refused['refused']} were refused")
    return {"answered": answered, "refused": {"cpu": used / refused["refused"], "requests": refused["refused"]}}
