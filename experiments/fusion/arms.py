"""Make arms of fused lists and of walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np

from .design import Arm, K, Options
from .legs import DAMPING, Legs

LEGS = ("dense", "graph", "lexical")
#: Default number of hits of each list to fuse, as in the paper of PhaseGraph.
POOLS = {"dense": 100, "graph": 30, "lexical": 100}
#: Minimum possible score of each leg (cosine, walk, BM25), from which TM2C2 scales.
LOWER = {"dense": -1.0, "graph": 0.0, "lexical": 0.0}


def fused(
    name: str,
    method: str,
    legs: Sequence[str] = LEGS,
    grid: Sequence[Options] = ({},),
    **options: Any,
) -> Arm:
    """Return an arm of ``hf.fuse`` over some legs, with the default pools unless the options or the grid set others."""
    fixed = {"pool": tuple(POOLS[leg] for leg in legs), **options}

    def run(found: Legs, chosen: Options) -> hf.Hits:
        return hf.fuse([found.lists[leg] for leg in legs], method=method, k=K, **{**fixed, **chosen})

    return Arm(name, run, grid)


def convex(name: str, legs: Sequence[str], grid: Sequence[Options]) -> Arm:
    """Return an arm of TM2C2: a convex combination of scores scaled from the leg's minimum to the list's maximum."""
    scale = hf.fusion.Calibration("theoretical_min_max", lower=tuple(LOWER[leg] for leg in legs))
    return fused(name, "linear", legs, grid, calibration=scale)


def walk(found: Legs, edge_types: Sequence[float], depth: int) -> hf.Hits:
    """Return the graph leg over the linked graph, with a weight for each edge type."""
    return hf.ppr_topk(
        found.linked,
        found.seeds,
        depth,
        candidates=np.arange(len(found.passages)),
        stop="tol",
        empty="skip",
        damping=DAMPING,
        edge_type_weights=edge_types,
    )
