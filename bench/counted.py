"""``python -m bench.counted``: writes bench/results/counted.json, what the emulator counts of PhaseGraph's kernels.

Needs a checkout and g++: the emulator is of the tests. ``python -m bench.roofline`` puts the counts on docs/gpu.md.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib import import_module
from typing import Any

import hopfuse as hf
import numpy as np

from .cases.data import unit_vectors
from .counted_text import COUNTED
from .machine import ROOT
from .moved import MOVED, Search, bar
from .roofline import lane_blocks
from .settings import BACKEND_VARIABLE

NAME = "count"
NODES, ENTRIES, PASSAGES, DIM = 1_500, 20_000, 300, 64
BATCHES = (1, 32)
SEEDS = 3


def emulator() -> AbstractContextManager[Any]:
    """``backend="count"``: the emulator's build that counts, by the path of the tests."""
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    made: AbstractContextManager[Any] = import_module("variants").registered(NAME, NAME)
    return made


def count(batch: int, runtime: Any) -> dict[str, Any]:
    """A row for each kernel of the second search of a batch: the first one recorded it, and made the index resident."""
    index, names = _index()
    recipe = hf.recipes.PhaseGraph(index)
    rng = np.random.default_rng(2)
    mentions = [[names[e] for e in rng.choice(len(names), SEEDS, replace=False)] for _ in range(batch)]
    queries = unit_vectors(batch, DIM, seed=3)
    for _ in range(2):
        runtime.launches.clear(), runtime.counters.clear()
        recipe.search(vectors=queries, entities=mentions)
    (lanes,) = lane_blocks(batch)
    assert index.graph is not None
    search = Search(NODES, index.graph.num_stored, PASSAGES, DIM, batch, lanes)
    return {"search": asdict(search), "bar": bar(search), "kernels": _rows(search, runtime)}


def _rows(search: Search, runtime: Any) -> list[dict[str, Any]]:
    kernels = [launch[0] for launch in runtime.launches]
    rows: dict[str, dict[str, Any]] = {}
    has_ended = False
    for kernel, following, counters in zip(kernels, [*kernels[1:], ""], runtime.counters, strict=True):
        has_ended = not counters.global_stored if kernel.startswith("ppr_pass") else has_ended
        name = _name(kernel, following, has_ended)
        moved = MOVED[name](search) if name in MOVED else None
        row = rows.setdefault(name, {"kernel": name, "launches": 0, "asked": 0, "once": 0, "stated": 0})
        asked = counters.global_loaded + counters.global_stored
        row["launches"] += 1
        row["asked"] += asked
        row["once"] += asked - (moved.again if moved else 0)
        row["stated"] += moved.stated if moved else 0
    return list(rows.values())


def _name(kernel: str, following: str, has_ended: bool) -> str:
    """A kernel without its lanes and kind of edges; passes by what they do: with residuals, they are decided upon."""
    name = kernel.rsplit("_l", 1)[0].removesuffix("_weighted")
    if name not in ("ppr_pass", "ppr_control"):
        return name
    if has_ended:
        return f"{name}, nothing left"
    return f"{name}, with residuals" if following.startswith("ppr_control") else name


def _index() -> tuple[hf.Index, list[str]]:
    """A graph of that many entries without loops, every edge stored both ways."""
    rng = np.random.default_rng(1)
    pairs = rng.choice(NODES * (NODES - 1) // 2, ENTRIES // 2, replace=False)
    low, high = (side[pairs] for side in np.triu_indices(NODES, 1))
    graph = hf.Graph.from_edges(low, high, rng.uniform(0.5, 2.0, pairs.size), num_nodes=NODES)
    names = [f"entity {e}" for e in range(NODES - PASSAGES)]
    passages = [{"text": ""} for _ in range(PASSAGES)]
    return hf.Index.build(
        passages=passages, vectors=unit_vectors(PASSAGES, DIM, seed=4), graph=graph, entities=names
    ), names


def main() -> None:
    os.environ[BACKEND_VARIABLE] = NAME
    with emulator() as runtime:
        counts = [count(batch, runtime) for batch in BATCHES]
    COUNTED.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {COUNTED.name}")


if __name__ == "__main__":
    main()
