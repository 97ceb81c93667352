"""One request with many different filters, and what another key's searches take beside it."""

from __future__ import annotations

import json
import statistics
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .attacks import SLOWEST, Counts, Target, attack, only

#: Seconds of the victim's searches alone, before the attack.
ALONE_SECONDS = 3.0


@dataclass(frozen=True)
class Beside:
    """What was seen: times in seconds.

    Attributes
    ----------
    status : int
        Of the attacker's request.
    took : float
        The attacker's request.
    alone, beside : float
        95th percentile of the other key's searches before the attack and during it.
    searches : int
        The other key's searches during the attack.
    statuses : dict of int to int
        How often the other key's searches during the attack had each status.
    """

    status: int
    took: float
    alone: float
    beside: float
    searches: int
    statuses: dict[int, int]

    @property
    def ratio(self) -> float:
        """How many times as long the other key's searches take beside the attack."""
        return self.beside / self.alone


def different_filters(
    url: str,
    keys: Sequence[str],
    *,
    query: dict[str, Any],
    column: str = "year",
    count: int = 256,
    first: int = 0,
    step: int = 1,
    timeout_ms: int = 60_000,
) -> Beside:
    """Send one request of ``count`` queries with ``count`` different filters, and search beside it with another key.

    Parameters
    ----------
    url : str
        Of the server, without a slash at its end.
    keys : sequence of two str
        The attacker's key and the other one; empty strings if the server needs none.
    query : dict
        The query, as of ``POST /v1/search``; the attacker's queries have a filter, too.
    column : str
        An integer column of the metadata; the filters are ``column >= first``, ``first + step``, ...
    timeout_ms : int
        Of all requests.
    """

    def send(key: str, queries: list[dict[str, Any]]) -> int:
        body = json.dumps({"queries": queries, "k": 10, "timeout_ms": timeout_ms, "fields": []}).encode()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/search", body, headers)) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def timed() -> tuple[float, int]:
        began = time.perf_counter()
        status = send(keys[1], [query])
        return time.perf_counter() - began, status

    timed()
    alone, until = list[float](), time.monotonic() + ALONE_SECONDS
    while time.monotonic() < until:
        alone.append(timed()[0])
    attack: dict[str, Any] = {}

    def attacked() -> None:
        queries = [{**query, "allow": {f"{column}__ge": first + step * at}} for at in range(count)]
        began = time.perf_counter()
        attack["status"] = send(keys[0], queries)
        attack["took"] = time.perf_counter() - began

    attacker = threading.Thread(target=attacked)
    attacker.start()
    beside = []
    while attacker.is_alive():
        beside.append(timed())
    attacker.join()
    statuses = [status for _, status in beside]
    return Beside(
        attack["status"],
        attack["took"],
        _p95(alone),
        _p95([took for took, _ in beside]),
        len(beside),
        {status: statuses.count(status) for status in sorted(set(statuses))},
    )


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]


@attack("a filter for each query", only(200), search_ratio=5.0, slowest_seconds=6.0, memory_mib=400.0)
def a_filter_for_each_query(target: Target) -> Counts:
    """Requests of 256 queries with 256 filters that nobody used before."""
    counts: Counter[str] = Counter()
    vector = [1.0 / (1 + at) for at in range(32)]
    while target.goes_on():
        last = 2000 - counts["200"]
        queries = [
            {"vector": vector, "entities": [], "allow": {"year__ge": 1500 + at, "year__lt": last}} for at in range(256)
        ]
        began = time.monotonic()
        counts[str(_sent(target, queries))] += 1
        counts[SLOWEST] = max(counts[SLOWEST], round(1000 * (time.monotonic() - began)))
    return counts


def _sent(target: Target, queries: list[dict[str, Any]]) -> int:
    body = json.dumps({"queries": queries, "k": 10, "timeout_ms": 60_000, "fields": []}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {target.key}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{target.url}/v1/search", body, headers)) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
