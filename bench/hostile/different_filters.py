"""Requests of many different filters, beside which another key searches."""

from __future__ import annotations

import json
import time
from collections import Counter

from .attacks import SLOWEST, Counts, Target, attack, only
from .bounds import post, whole_query


@attack("a filter for each query", only(200), search_ratio=5.0, slowest_seconds=6.0, memory_mib=400.0)
def a_filter_for_each_query(target: Target) -> Counts:
    """Requests of 256 queries with 256 filters that nobody used before."""
    counts: Counter[str] = Counter()
    while target.goes_on():
        last = 2000 - counts["200"]
        queries = [whole_query(allow={"year__ge": 1500 + at, "year__lt": last}) for at in range(256)]
        began = time.monotonic()
        asked = {"queries": queries, "k": 10, "timeout_ms": 60_000, "fields": []}
        counts[str(post(target.url, target.key, json.dumps(asked).encode())[0])] += 1
        counts[SLOWEST] = max(counts[SLOWEST], round(1000 * (time.monotonic() - began)))
    return counts
