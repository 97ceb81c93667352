"""``python -m bench.offline``: the overhead of scoring in parts, and the speed-up of a second worker.

PhaseGraph answers queries over a synthetic index of passages with vectors, entities and a graph. Prints JSON: the CPU
time of scoring alone, and with plan, parts and merge, in turns, with the median of their ratios; the rates of one
worker, of two, and with ``--ray`` of two actors of a Ray cluster on this machine, from the first finished part to the
last; their CPU time per query, which other programs disturb less; whether all results have the same bytes; and the peak
memory.

With ``--million``, ``hopfuse score --workers 2`` answers 10⁶ queries. It is killed when half of the parts are finished,
and started again. Prints its rate, its CPU time, the peak memory of a process, and how soon it resumed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse import offline
from hopfuse.io.queries import Query, read_queries
from hopfuse.offline import ray
from hopfuse.offline.plan import rows_a_part

from .result_file import ResultFile, add_out_option

CHUNK, DIM, K = 256, 64, 10
#: Queries drawn at a time.
BLOCK = 10_000
#: Queries of ``--million``.
MILLION = 1_000_000


class _Timed:
    """A scorer that writes its CPU time since it was made to a file of its process."""

    def __init__(self, scorer: offline.Scorer, folder: Path) -> None:
        self._scorer, self._file, self._start = scorer, folder / str(os.getpid()), time.process_time()

    def score(self, queries: Sequence[Query], first: int) -> Sequence[Any]:
        rows = self._scorer.score(queries, first)
        self._file.write_text(f"{time.process_time() - self._start}")
        return rows


def open_scorer(plan: offline.Plan, threads: int | None) -> offline.Scorer:
    """Return PhaseGraph over the plan's index; with ``plan.scoring["times"]``, write its CPU time to that folder."""
    scorer = offline.RetrieverScorer(hf.Retriever(offline.open_index(plan), "phase-graph", threads=threads), k=K)
    return _Timed(scorer, Path(plan.scoring["times"])) if "times" in plan.scoring else scorer


def write_inputs(place: Path, passages: int, queries: int) -> None:
    """Write an index and queries for it, drawn with a fixed seed."""
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
    with open(place / "queries.jsonl", "w", encoding="utf-8") as file:
        for first in range(0, queries, BLOCK):
            count = min(BLOCK, queries - first)
            vectors = draw.standard_normal((count, DIM)).round(4).tolist()
            named = draw.integers(0, entities, (count, 2)).tolist()
            for at in range(count):
                file.write(json.dumps({"id": f"q{first + at}", "entities": named[at], "vector": vectors[at]}) + "\n")


def cpu_alone(place: Path) -> float:
    """Return the CPU seconds of reading and scoring the queries in chunks, on one thread."""
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


def rate_of(place: Path, name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Return queries per second from the first finished part to the last, CPU time per query, and a digest."""
    times, folder = place / f"{name}-times", offline.Folder(place / name)
    times.mkdir()
    plan = offline.make_plan(place / "queries.jsonl", place / "index", scoring={"times": str(times)})
    folder.create(plan)
    make(folder.path, open_scorer)
    ends = sorted((folder.part(part).stat().st_mtime, part) for part in range(plan.num_parts))
    rows = [end - first for first, end in (plan.row_range(part) for _, part in ends[1:])]
    offline.merge(folder.path, place / f"{name}.jsonl")
    cpu = sum(float(path.read_text()) for path in times.iterdir())
    return {
        "queries_a_second": sum(rows) / (ends[-1][0] - ends[0][0]),
        "cpu_ms_a_query": cpu / plan.rows * 1e3,
        "sha256": hashlib.sha256((place / f"{name}.jsonl").read_bytes()).hexdigest(),
    }


def kill_and_go_on(place: Path, queries: int) -> dict[str, Any]:
    """Return the figures of ``hopfuse score`` with two workers, killed once in the middle."""
    words = ["score", place / "index", "--queries", place / "queries.jsonl", "--recipe", "phase-graph", "-k", K]
    words += ["--workers", 2, "--verify", 3, "--out", place / "ranked.jsonl"]
    command = [sys.executable, "-m", "hopfuse", *map(str, words)]
    parts = place / "ranked.jsonl.partial" / "parts"
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    half = -(-queries // rows_a_part(queries)) // 2
    while _finished(parts) < half and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = time.monotonic()
    time.sleep(1)  # its workers end when they notice
    there = _finished(parts)
    again = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while _finished(parts) == there and process.poll() is None:
        time.sleep(0.1)
    first = time.monotonic()
    summary = process.communicate()[1].strip().splitlines()[-1]
    if process.returncode != 0:
        raise RuntimeError(summary)
    ended, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, cpu = killed - begun + ended - again, used.ru_utime + used.ru_stime
    return {
        "queries": queries,
        "killed_after_parts": there,
        "seconds": seconds,
        "queries_a_second": queries / seconds,
        "seconds_to_first_new_part": first - again,
        "seconds_a_part": (killed - begun) / there * 2,
        "cpu_seconds_but_of_killed_workers": cpu,
        "peak_mib_of_a_process": used.ru_maxrss / 1024,
        "load_average": os.getloadavg()[0],
        "summary": summary,
    }


def _finished(parts: Path) -> int:
    return sum(1 for _ in os.scandir(parts)) if parts.is_dir() else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the results; return exit status 1 if several processes made other bytes than one."""
    parser = argparse.ArgumentParser(prog="python -m bench.offline", description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument(
        "--repeats", type=int, default=3, help="repetitions of scoring alone and in parts; 0 for rates only"
    )
    add_out_option(parser)
    parser.add_argument("--ray", action="store_true", help="also measure two Ray actors; needs the extra ray")
    parser.add_argument("--million", action="store_true", help="10⁶ queries by hopfuse score, killed once")
    options = parser.parse_args(argv)
    file = ResultFile(f"python -m bench.offline --repeats {options.repeats}")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if options.million:
            write_inputs(place, options.passages, MILLION)
            print(json.dumps({"passages": options.passages, **kill_and_go_on(place, MILLION)}, indent=1))
            return 0
        write_inputs(place, options.passages, options.queries)
        pairs = [(cpu_alone(place), cpu_of_contract(place, f"run{at}")) for at in range(options.repeats)]
        rates = {
            "one worker": rate_of(place, "one", partial(offline.run, threads=1)),
            "two workers": rate_of(place, "two", partial(offline.run, workers=2)),
        }
        if options.ray:
            rates["two actors"] = rate_of(place, "actors", partial(ray.run, actors=2))
    single = rates["one worker"]["queries_a_second"]
    peaks = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found: dict[str, Any] = {
        "queries": options.queries,
        "passages": options.passages,
        "overhead": statistics.median(whole / alone for alone, whole in pairs) - 1 if pairs else None,
        "cpu_seconds_alone": [alone for alone, _ in pairs],
        "cpu_seconds_contract": [whole for _, whole in pairs],
        "rates": rates,
        "gains": {name: one["queries_a_second"] / single for name, one in rates.items()},
        "equal_bytes": len({one["sha256"] for one in rates.values()}) == 1,
        "load_average": os.getloadavg()[0],
        "peak_mib": {"parent": peaks[0], "largest_worker": peaks[1]},
    }
    print(json.dumps(found, indent=1))
    for name, one in rates.items():
        file.add(
            queries=options.queries,
            passages=options.passages,
            how=name,
            **{"CPU of a query, ms": one["cpu_ms_a_query"], "queries a second": one["queries_a_second"]},
            **{"gain": one["queries_a_second"] / single, "peak of a process, MiB": max(peaks)},
            **{"CPU over scoring alone": 1 + found["overhead"] if pairs else None},
        )
    file.write(options.out, children=resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
    return 0 if found["equal_bytes"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
