"""``python -m experiments.filters [--out FILE]``: the cost of filters by metadata.

Prints the CPU time of compiling each filter over a million rows, of which half have each value: the least of 21 times,
which other programs disturb least. Every filter is new (a cached mask costs a look-up); columns are read once before,
as in an index in use. Then prints the CPU time of isolated searches of a tenant's passages: of the first one, which
makes the tenant's index, and of later ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.index import Metadata
from hopfuse.lexical import BM25

from bench.result_file import ResultFile, add_out_option

ROWS, REPEATS = 1_000_000, 21
PASSAGES, TENANTS = (2_000, 20_000), 20
MEASURED = 3  # tenants for which a first search and later ones are timed

FILTERS: dict[str, Callable[[int], hf.Where]] = {
    "tenant (string) eq": lambda at: hf.where(tenant=f"t{at}"),
    "tenant in 3": lambda at: hf.where(tenant__in=[f"t{at}", f"t{at + 1}", f"t{at + 2}"]),
    "year (int64) ge": lambda at: hf.where(year__ge=1950 + at),
    "rank (float64) lt": lambda at: hf.where(rank__lt=at / REPEATS),
    "day (timestamp) ge": lambda at: hf.where(day__ge=f"2020-01-{at + 1:02d}T00:00:00Z"),
    "draft (bool) eq, year ge": lambda at: hf.where(draft=True, year__ge=1950 + at),
    "tags (strings) any of 1": lambda at: hf.where(tags__any=[f"g{at}"]),
    "year in 100 values": lambda at: hf.where(year__in=range(1900 + at, 2000 + at)),
    "year in 100 of a million": lambda at: hf.where(year__in=range(at, 1_000_000 + at, 10_000)),
    "rank in 100 values": lambda at: hf.where(rank__in=[(at + one) / 128 for one in range(100)]),
    "tags all of 2": lambda at: hf.where(tags__all=[f"g{at}", f"g{at + 1}"]),
    "tags any of 10": lambda at: hf.where(tags__any=[f"g{one}" for one in range(at, at + 10)]),
    "tags any of 2": lambda at: hf.where(tags__any=[f"g{at}", f"g{at + 1}"]),
    "tenant eq, year ge, tags any of 1": lambda at: hf.where(tenant=f"t{at}", year__ge=1950, tags__any=[f"g{at}"]),
}


def rows(count: int) -> list[dict[str, Any]]:
    """Return passages with six columns: tenant and two of 50 tags in every row, the others missing in half of them."""
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
    """Return the least CPU milliseconds of compiling each filter."""
    metadata: Metadata = index.metadata
    return {
        name: min(cpu_ms(partial(make(at).mask, metadata)) for at in range(REPEATS)) for name, make in FILTERS.items()
    }


def tenants(count: int, of: int) -> hf.Index:
    """Return an index of tenants' passages, with 6 entities, 40 words, and an edge between two of the entities each."""
    random = np.random.default_rng(0)
    entities = count // 2
    own = [random.choice(entities, 6, replace=False) for _ in range(count)]
    edges = [{"src": p, "dst": count + int(e), "type": "context"} for p in range(count) for e in own[p]]
    edges += [
        {"src": count + int(own[p][0]), "dst": count + int(own[p][1]), "type": "fact", "passage": p}
        for p in range(count)
    ]
    texts = [" ".join(f"w{word}" for word in random.zipf(1.3, 40) % 30_000) for _ in range(count)]
    passages = [{"text": texts[p], "metadata": {"tenant": f"t{p % of}"}} for p in range(count)]
    index = hf.Index.build(
        passages=passages,
        vectors=random.standard_normal((count, 256)).astype(np.float32),
        entities=[f"Entity {e}" for e in range(entities)],
        graph=edges,
    )
    return index.with_lexical(BM25.build(texts, stopwords=None, stemmer=None).matrix)


def searched(count: int, of: int) -> list[tuple[str, float, float, float]]:
    """Return each recipe's CPU milliseconds of a search of everything, and of a tenant's first and later searches."""
    index, lines = tenants(count, of), []
    vectors = np.random.default_rng(1).standard_normal((1, 256)).astype(np.float32)
    ask: dict[str, Any] = {"queries": ["w3 w70 w900"], "vectors": vectors, "entities": [["Entity 7"]]}
    for kind in (hf.recipes.HybridRRF, hf.recipes.PhaseGraph, hf.recipes.GuidedWalk):
        recipe = kind(index, lexical=BM25(index.lexical), threads=1)
        recipe.search(**ask)
        whole = min(cpu_ms(partial(recipe.search, **ask)) for _ in range(REPEATS))
        first, later = [], []
        for tenant in range(MEASURED):
            allow = hf.where(tenant=f"t{tenant}")
            again = kind(index.with_facts(None), lexical=BM25(index.lexical), threads=1)  # no cached parts
            first.append(cpu_ms(partial(again.search, **ask, allow=allow)))
            later.append(min(cpu_ms(partial(again.search, **ask, allow=allow)) for _ in range(REPEATS)))
        lines.append((kind.__name__, whole, min(first), min(later)))
    return lines


def main() -> None:
    """Print the tables, and write their rows."""
    parser = argparse.ArgumentParser(prog="python -m experiments.filters", description=__doc__)
    add_out_option(parser)
    out, file = parser.parse_args().out, ResultFile("python -m experiments.filters")
    index = hf.Index.build(passages=rows(ROWS), metadata_types={"day": "timestamp"})
    index.mask(hf.where(tenant="", year=0, rank=0, draft=True, day__exists=True, tags__any=["g0"]))
    print(f"| filter over {ROWS:,} passages | ms |\n|---|---:|")
    for name, ms in compiled(index).items():
        print(f"| {name} | {ms:.2f} |")
        file.add(passages=ROWS, what=name, ms=ms)
    for count in PASSAGES:
        print(f"\n| {count:,} passages, {TENANTS} tenants | everything, ms | first search, ms | later, ms |")
        print("|---|---:|---:|---:|")
        for name, whole, first, later in searched(count, TENANTS):
            print(f"| {name} | {whole:.1f} | {first:.0f} | {later:.1f} |")
            file.add(passages=count, what=name, **{"ms": whole, "first of a tenant, ms": first, "later, ms": later})
    file.write(out)


if __name__ == "__main__":
    main()
