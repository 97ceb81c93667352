"""``python -m bench.offline``: what scoring by the partition contract costs, and what a second worker gains.

A synthetic index of passages with vectors, entities and a graph is asked so many queries by PhaseGraph. Printed as
JSON: the CPU time of scoring alone and of plan, parts and merge around it, in turns, with the median of their ratios;
the rate of one worker and of two, from the first finished part to the last; whether both made the same bytes; and the
peak memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse import offline
from hopfuse.io.queries import read_queries

CHUNK, DIM, K = 256, 64, 10


def open_scorer(plan: offline.Plan, threads: int | None) -> offline.RecipeScorer:
    """Return PhaseGraph over the plan's index."""
    return offline.RecipeScorer(hf.recipes.PhaseGraph(offline.open_index(plan), threads=threads), k=K)


def write_inputs(place: Path, passages: int, queries: int) -> None:
    """Write an index and queries for it, drawn by a fixed seed."""
    draw = np.random.default_rng(0)
    entities = passages // 2
    ends = np.column_stack(
        [draw.integers(0, passages, 4 * passages), passages + draw.integers(0, entities, 4 * passages)]
    )
    hf.Index.build(
        passages=[{"text": f"Passage {at}."} for at in range(passages)],
        vectors=draw.standard_normal((passages, DIM), dtype=np.float32),
        entities=[f"e{at}" for at in range(entities)],
        graph=[{"src": int(a), "dst": int(b)} for a, b in ends],
    ).save(place / "index")
    vectors = draw.standard_normal((queries, DIM), dtype=np.float32).round(4)
    named = draw.integers(0, entities, (queries, 2)).tolist()
    with open(place / "queries.jsonl", "w", encoding="utf-8") as file:
        for at in range(queries):
            file.write(json.dumps({"id": f"q{at}", "entities": named[at], "vector": vectors[at].tolist()}) + "\n")


def cpu_alone(place: Path) -> float:
    """Return the CPU seconds of reading the queries and scoring them, a chunk at a time, on one thread."""
    plan = offline.make_plan(place / "queries.jsonl", place / "index", scoring={})
    scorer, start = open_scorer(plan, 1), time.process_time()
    chunk = []
    for number, query in enumerate(read_queries(place / "queries.jsonl")):
        chunk.append(query)
        if len(chunk) == CHUNK or number == plan.rows - 1:
            scorer.score(chunk, number + 1 - len(chunk))
            chunk = []
    return time.process_time() - start


def cpu_of_contract(place: Path, name: str) -> float:
    """Return the CPU seconds of the plan with all its checks, the parts and the merge, on one thread."""
    start = time.process_time()
    plan = offline.make_plan(place / "queries.jsonl", place / "index", scoring={})
    offline.Folder(place / name).create(plan)
    offline.run(place / name, open_scorer, threads=1)
    offline.merge(place / name, place / f"{name}.jsonl")
    return time.process_time() - start


def rate_of(place: Path, workers: int) -> tuple[float, str]:
    """Return queries a second from the first finished part to the last, and the digest of the result."""
    folder = offline.Folder(place / f"workers{workers}")
    folder.create(offline.make_plan(place / "queries.jsonl", place / "index", scoring={}))
    done: list[tuple[float, int]] = []
    offline.run(
        folder.path,
        open_scorer,
        workers=workers,
        threads=1 if workers == 1 else None,
        progress=lambda rows: done.append((time.monotonic(), rows)),
    )
    offline.merge(folder.path, place / f"workers{workers}.jsonl")
    parts = done[1:]  # the first call says what was there
    seconds = parts[-1][0] - parts[0][0]
    digest = hashlib.sha256((place / f"workers{workers}.jsonl").read_bytes()).hexdigest()
    return sum(rows for _, rows in parts[1:]) / seconds, digest


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 where one worker and two made different bytes."""
    parser = argparse.ArgumentParser(prog="python -m bench.offline", description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_inputs(place, options.passages, options.queries)
        pairs = [(cpu_alone(place), cpu_of_contract(place, f"run{at}")) for at in range(options.repeats)]
        one, two = rate_of(place, 1), rate_of(place, 2)
    peaks = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found: dict[str, Any] = {
        "queries": options.queries,
        "passages": options.passages,
        "overhead": statistics.median(whole / alone for alone, whole in pairs) - 1,
        "cpu_seconds_alone": [alone for alone, _ in pairs],
        "cpu_seconds_contract": [whole for _, whole in pairs],
        "rate_one_worker": one[0],
        "rate_two_workers": two[0],
        "gain": two[0] / one[0],
        "equal_bytes": one[1] == two[1],
        "peak_mib": {"parent": peaks[0], "largest_worker": peaks[1]},
    }
    print(json.dumps(found, indent=1))
    return 0 if found["equal_bytes"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
