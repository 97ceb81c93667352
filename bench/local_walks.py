"""How local the walks of questions are, and what that saves: ``python -m bench.local_walks --out FILE``.

For each graph: the entries that a local walk reads until its list is proven, as shares of one pass over the graph, and
the times of one question and of a batch by passes and with ``walk="auto"``, in turns. The questions are those of the
folders, with the entities that they name; those of the atlas and of generated graphs have one to four random entities.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .cases.data import WalkGraph, data_folder, read_graph
from .cases.graphs import atlas, generated
from .errors import UnavailableError
from .machine import commit, machine

FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
#: Stored entries of generated graphs, and their questions.
GENERATED = {"generated 1e7": 10_000_000, "generated 1e8": 100_000_000}
QUESTIONS, OF_GENERATED, BATCH = 150, 40, 64
#: What is proven: hits, "order" or "set", damping, whether queries have node weights.
LISTS = (
    (10, "set", 0.5, False),
    (10, "order", 0.5, False),
    (30, "set", 0.5, False),
    (100, "set", 0.5, False),
    (10, "set", 0.85, False),
    (10, "set", 0.5, True),
    (10, "order", 0.5, True),
)
#: Lists whose times are measured.
TIMED = ((10, "order", 0.5, False), (10, "order", 0.5, True))
LEAST_WEIGHT = 0.1
SHARES = (25, 50, 75, 90, 100)


class Walks(NamedTuple):
    """A graph with the seeds of questions; passages are the candidates."""

    loaded: WalkGraph
    seeds: list[dict[int, float]]


def of_folder(name: str) -> Walks:
    """Return a folder's graph and the entities that its questions name."""
    folder = data_folder(name)
    graph, names = read_graph(folder)
    passages = graph.num_nodes - len(names)
    number = {text.lower(): passages + at for at, text in enumerate(names)}
    rows = [json.loads(line) for line in (folder / "query_entities.jsonl").read_text("utf-8").splitlines()]
    seeds = [{number[text.lower()]: 1.0 for text, _ in row["entities"] if text.lower() in number} for row in rows]
    return Walks(WalkGraph(name, graph, passages), [row for row in seeds if row][:QUESTIONS])


def of_random(load: Callable[[bool], WalkGraph], questions: int) -> Walks:
    """Return a graph, with questions of one to four random entities that have edges."""
    loaded = load(False)
    rng = np.random.default_rng(5)
    linked = loaded.num_passages + np.flatnonzero(loaded.graph.degree[loaded.num_passages :].any(axis=1))
    rows = [rng.choice(linked, rng.integers(1, 5), replace=False) for _ in range(questions)]
    return Walks(loaded, [dict.fromkeys(row.tolist(), 1.0) for row in rows])


SOURCES: dict[str, Callable[[], Walks]] = {
    **{name: partial(of_folder, name) for name in FOLDERS},
    "atlas": partial(of_random, atlas, QUESTIONS),
    **{name: partial(of_random, partial(generated, size), OF_GENERATED) for name, size in GENERATED.items()},
}


def node_weights(walks: Walks, queries: int) -> NDArray[np.float32]:
    """Return random weights from ``LEAST_WEIGHT`` to 1, (queries, N)."""
    rng = np.random.default_rng(3)
    return rng.uniform(LEAST_WEIGHT, 1, (queries, walks.loaded.graph.num_nodes)).astype(np.float32)


def counts(walks: Walks, k: int, prove: str, damping: float, weighted: bool) -> dict[str, Any]:
    """Return the share of lists that local walks prove, and percentiles of the entries that they read, in passes."""
    graph = walks.loaded.graph
    passages = hf.Candidates(graph, np.arange(walks.loaded.num_passages))
    options: dict[str, Any] = {"candidates": passages, "prove": prove, "damping": damping}
    proven, read = [], []
    for begin in range(0, len(walks.seeds), BATCH):
        seeds = walks.seeds[begin : begin + BATCH]
        if weighted:
            options["node_weights"] = node_weights(walks, len(seeds))
        hits = hf.ppr_topk(graph, seeds, k, walk="local", **options)
        assert hits.walks is not None
        proven.append(hits.proven)
        read.append(hits.walks.entries / graph.num_stored)
    columns = {f"p{share}": float(np.percentile(np.concatenate(read), share)) for share in SHARES}
    return {"proven": float(np.concatenate(proven).mean()), **columns}


def times(walks: Walks, k: int, threads: int, turns: int, weighted: bool) -> dict[str, float]:
    """Return milliseconds of single questions and of a batch, by passes and with ``auto``; the lists must agree."""
    graph = walks.loaded.graph
    passages = hf.Candidates(graph, np.arange(walks.loaded.num_passages))

    weights = node_weights(walks, BATCH) if weighted else None

    def search(seeds: list[dict[int, float]], walk: Any) -> tuple[hf.PprHits, float]:
        own = None if weights is None else weights[: len(seeds)]
        begin = time.perf_counter()
        hits = hf.ppr_topk(graph, seeds, k, candidates=passages, walk=walk, threads=threads, node_weights=own)
        return hits, 1e3 * (time.perf_counter() - begin)

    batch = (walks.seeds * BATCH)[:BATCH]
    single: dict[str, list[float]] = {"passes": [], "auto": []}
    whole: dict[str, list[float]] = {"passes": [], "auto": []}
    for walk in single:
        search(walks.seeds[:1], walk)
    for seeds in walks.seeds:
        found = {}
        for walk, taken in single.items():
            found[walk], spent = search([seeds], walk)
            taken.append(spent)
        both = found["passes"].proven & found["auto"].proven
        if not (found["passes"].ids[both] == found["auto"].ids[both]).all():
            raise AssertionError(f"{walks.loaded.source}: the proven lists of {seeds} differ")
    for _ in range(turns):
        for walk, taken in whole.items():
            taken.append(search(batch, walk)[1])
    columns = {}
    for walk in single:
        columns |= {
            f"{walk} median ms": float(np.median(single[walk])),
            f"{walk} mean ms": float(np.mean(single[walk])),
        }
        columns |= {f"{walk} p95 ms": float(np.percentile(single[walk], 95))}
        columns |= {f"{walk} B={BATCH} ms": float(np.median(whole[walk]))}
    return columns


def rows(names: Sequence[str], threads: int, turns: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each graph and kind of list; times are those of an order of 10."""
    for name in names:
        try:
            walks = SOURCES[name]()
        except UnavailableError as absent:
            print(f"{name}: {absent}")
            continue
        graph: hf.Graph = walks.loaded.graph
        sizes = {"graph": name, "nodes": graph.num_nodes, "entries": graph.num_stored, "questions": len(walks.seeds)}
        for of_list in LISTS:
            k, prove, damping, weighted = of_list
            timed = times(walks, k, threads, turns, weighted) if of_list in TIMED else {}
            kind = {"k": k, "prove": prove, "damping": damping, "node weights": int(weighted)}
            yield {**sizes, **kind, **counts(walks, *of_list), **timed}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print each row, and write a CSV file whose first line names the machine."""
    parser = argparse.ArgumentParser(prog="python -m bench.local_walks", description=__doc__)
    parser.add_argument("--graph", action="append", choices=sorted(SOURCES), help="default: all but generated 1e8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9, help="batches timed each way")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    made = []
    for row in rows(
        options.graph or [name for name in SOURCES if name != "generated 1e8"], options.threads, options.turns
    ):
        print(json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}))
        made.append(row)
    if options.out is not None and made:
        write(options.out, made, options.threads)


def write(path: Path, made: list[dict[str, Any]], threads: int) -> None:
    """Write rows as CSV, with the machine in a comment."""
    names = list(dict.fromkeys(name for row in made for name in row))
    here, source = machine(), commit()
    changed = " with changes" if source["modified"] else ""
    about = (
        f"{here['cpu']}, {here['cores']} cores, {threads} threads, "
        f"variant {hf.backend_info()['backends']['cpu']['variant']}, commit {source['commit']}{changed}"
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {about}\n")
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(
            {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()} for row in made
        )


if __name__ == "__main__":
    main()
