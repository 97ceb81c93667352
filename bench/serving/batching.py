"""Comparison of values of ``limits.batch``, the maximum number of queries in a call: rates, CPU, latency of others."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from .processes import Server
from .setting import MANY, Setting
from .steady import CALLERS, CALLERS_OF_MANY, Side
from .wrk import closed

LIMITS = (16, 32, 64, 128)
#: Number of connections, more than any of the limits.
CROWD = 256


def batch_limits(setting: Setting) -> dict[str, Any]:
    """Return, by limit, rates at saturation and the latency of one caller during others' large requests, in turns."""
    parts: list[Callable[[Setting, Server], dict[str, float]]] = [_callers, _crowd, _many, _lone]
    seen: dict[int, list[dict[str, float]]] = {limit: [] for limit in LIMITS}
    with ExitStack() as stack:
        servers = {limit: stack.enter_context(setting.hopfuse(batch=limit)) for limit in LIMITS}
        for server in servers.values():
            closed(server.url, setting.one, CALLERS, 1.0)
        for _ in range(setting.lengths.turns):
            found: dict[int, dict[str, float]] = {limit: {} for limit in LIMITS}
            for part in parts:  # all limits of a part follow each other closely
                for limit, server in servers.items():
                    found[limit] |= part(setting, server)
            for limit in LIMITS:
                seen[limit].append(found[limit])
    return {
        str(limit): {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        for limit, turns in seen.items()
    }


def _callers(setting: Setting, server: Server) -> dict[str, float]:
    found = Side(server, setting.one, CALLERS, 1).saturated(setting.lengths.closed / 2)
    return {"rate": found["queries_per_second"], "cpu": found["server_cpu_per_query"], "p99": found["p99"]}


def _crowd(setting: Setting, server: Server) -> dict[str, float]:
    found = Side(server, setting.one, CROWD, 1).saturated(setting.lengths.closed / 2)
    return {"crowd_rate": found["queries_per_second"], "crowd_cpu": found["server_cpu_per_query"]}


def _many(setting: Setting, server: Server) -> dict[str, float]:
    found = Side(server, setting.many, CALLERS_OF_MANY, MANY).saturated(setting.lengths.closed / 2)
    return {"many_rate": found["queries_per_second"], "many_cpu": found["server_cpu_per_query"]}


def _lone(setting: Setting, server: Server) -> dict[str, float]:
    """Return the latency of one caller during two others' requests of 256 queries."""
    seconds = setting.lengths.closed / 2
    with ThreadPoolExecutor(1) as beside:
        others = beside.submit(closed, server.url, setting.very_many, 2, seconds)
        lone = closed(server.url, setting.one, 1, seconds)
        others.result()
    return {"lone_p50": lone["p50"], "lone_p99": lone["p99"]}
