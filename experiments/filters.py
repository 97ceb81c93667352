"""Costs of filters by metadata: ``python -m experiments.filters``.

Prints the median CPU time of compiling each filter over a million rows, of which half have each value. Every filter is
compiled anew (a mask that is kept costs a look-up); columns are read once before, as by an index in use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.index import Metadata

ROWS, REPEATS = 1_000_000, 21

FILTERS: dict[str, Callable[[int], hf.Where]] = {
    "tenant (string) eq": lambda at: hf.where(tenant=f"t{at}"),
    "tenant in 3": lambda at: hf.where(tenant__in=[f"t{at}", f"t{at + 1}", f"t{at + 2}"]),
    "year (int64) ge": lambda at: hf.where(year__ge=1950 + at),
    "rank (float64) lt": lambda at: hf.where(rank__lt=at / REPEATS),
    "day (timestamp) ge": lambda at: hf.where(day__ge=f"2020-01-{at + 1:02d}T00:00:00Z"),
    "draft (bool) eq, year ge": lambda at: hf.where(draft=True, year__ge=1950 + at),
    "tags (strings) any of 1": lambda at: hf.where(tags__any=[f"g{at}"]),
    "year in 100 values": lambda at: hf.where(year__in=range(1900 + at, 2000 + at)),
    "tags all of 2": lambda at: hf.where(tags__all=[f"g{at}", f"g{at + 1}"]),
    "tags any of 2": lambda at: hf.where(tags__any=[f"g{at}", f"g{at + 1}"]),
    "tenant eq, year ge, tags any of 1": lambda at: hf.where(tenant=f"t{at}", year__ge=1950, tags__any=[f"g{at}"]),
}


def rows(count: int) -> list[dict[str, Any]]:
    """Return passages with six columns, half of each missing but for two items of 50 tags in every list."""
    random = np.random.default_rng(0)
    years, tenants = random.integers(1950, 2025, count).tolist(), random.integers(0, 50, count).tolist()
    tags, ranks = random.integers(0, 50, (count, 2)).tolist(), random.random(count).tolist()
    there = random.random(count) < 0.5
    days = (np.datetime64("2020-01-01") + random.integers(0, 2000, count)).tolist()
    return [
        {
            "text": "",
            "metadata": {
                "tenant": f"t{tenants[at]}",
                "tags": [f"g{tag}" for tag in tags[at]],
                **(
                    {"year": years[at], "rank": ranks[at], "day": f"{days[at]}T00:00:00Z", "draft": tags[at][0] < 25}
                    if there[at]
                    else {}
                ),
            },
        }
        for at in range(count)
    ]


def cpu_ms(call: Callable[[], Any]) -> float:
    """Return the CPU time of a call in milliseconds."""
    begin = time.process_time()
    call()
    return 1e3 * (time.process_time() - begin)


def compiled(index: hf.Index) -> dict[str, float]:
    """Return the median CPU milliseconds of each filter, none of which was compiled before."""
    metadata: Metadata = index.metadata
    return {
        name: median(cpu_ms(partial(make(at).mask, metadata)) for at in range(REPEATS))
        for name, make in FILTERS.items()
    }


def main() -> None:
    """Print a table."""
    index = hf.Index.build(passages=rows(ROWS), metadata_types={"day": "timestamp"})
    index.mask(hf.where(tenant="", year=0, rank=0, draft=True, day__exists=True, tags__any=["g0"]))
    print(f"| filter over {ROWS:,} passages | ms |\n|---|---:|")
    for name, ms in compiled(index).items():
        print(f"| {name} | {ms:.2f} |")


if __name__ == "__main__":
    main()
