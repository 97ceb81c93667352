"""The recipe without a server, in its own process, for comparison with serving."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import hopfuse as hf

from ..stats import summary
from .inputs import K, Questions


def rates(index: str, questions: str, batches: list[int], seconds: float, threads: int | None) -> dict[str, Any]:
    """Return seconds of a call, queries per second and CPU per query, by the number of queries in a call."""
    asked, recipe = Questions.load(questions), hf.recipes.PhaseGraph(hf.Index.open(index), threads=threads)
    found: dict[str, Any] = {}
    for batch in batches:
        for first in range(0, 3 * batch, batch):
            recipe.search(**asked.some(first, batch), k=K)
        times, first, cpu, end = [], 0, time.process_time(), time.perf_counter() + seconds
        while time.perf_counter() < end or not times:
            given = asked.some(first, batch)
            began = time.perf_counter()
            recipe.search(**given, k=K)
            times.append(time.perf_counter() - began)
            first += batch
        queries = batch * len(times)
        found[str(batch)] = {
            "call": summary(times),
            "queries_per_second": queries / sum(times),
            "cpu_per_query": (time.process_time() - cpu) / queries,
        }
    return found


if __name__ == "__main__":
    print(json.dumps(rates(**json.load(sys.stdin))))
