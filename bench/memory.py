"""``python -m bench.memory``: the memory of a graph's arrays, of building it, and of walks on it. Linux only.

The graph is generated with ``--stored`` entries, as in ``ppr-1e7`` and ``ppr-1e8``. Prints JSON with the bytes of its
arrays per entry and per node, and the peak of resident memory: per entry, for the list of edges and the graph made of
it, above what there was before; per node, for walks of a number of queries at once, above what there was before the
first walk, so with the tables that walks make of the graph once, and with their scores. ``--out`` writes a file, too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hopfuse as hf

from .cases.data import seeds
from .cases.graphs import generated
from .cases.ppr import DAMPING, SEEDS, TOL
from .machine import commit, machine

BATCHES = (1, 8, 32)


@contextmanager
def rise(before: int) -> Iterator[list[int]]:
    """Yield a list, to which the peak of resident memory above ``before`` bytes is appended at the end."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    found = list[int]()
    yield found
    found.append(_status("VmHWM") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def measure(stored: int, threads: int) -> dict[str, Any]:
    """Return the memory use of a graph of about ``stored`` entries."""
    with rise(_status("VmRSS")) as built:
        loaded = generated(stored, quick=False)
    graph, walks = loaded.graph, {}
    arrays = {name: array.nbytes for name, array in graph.to_arrays().items()}
    entries = sum(arrays.get(name, 0) for name in ("indices", "weight", "edge_type"))
    before = _status("VmRSS")
    for batch in BATCHES:
        rows = seeds(graph, batch, SEEDS, first=loaded.num_passages)
        with rise(before) as walked:
            found = hf.ppr(graph, rows, damping=DAMPING, tol=TOL, max_iter=4, threads=threads).scores
        assert found.shape == (batch, graph.num_nodes)
        del found
        walks[f"B={batch}"] = walked[0] / graph.num_nodes
    return {
        "machine": machine(),
        **commit(),
        "threads": threads,
        "stored_entries": graph.num_stored,
        "nodes": graph.num_nodes,
        "array_bytes_an_entry": entries / graph.num_stored,
        "array_bytes_a_node": (sum(arrays.values()) - entries) / graph.num_nodes,
        "graph_bytes": sum(arrays.values()),
        "build_bytes_an_entry": built[0] / graph.num_stored,
        "walk_bytes_a_node": walks,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--stored", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    found = json.dumps(measure(options.stored, options.threads), indent=1)
    print(found)
    if options.out is not None:
        options.out.write_text(found + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
