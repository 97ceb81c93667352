"""Arms made of fused lists, and of walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np

from .design import Arm, K, Options
from .legs import DAMPING, Legs

LEGS = ("dense", "graph", "lexical")
#: How much of each list is fused, unless a question is about that: as the paper of PhaseGraph has it.
POOLS = {"dense": 100, "graph": 30, "lexical": 100}
#: The least score of each leg: cosine, walk, BM25. What TM2C2 scales from.
LOWER = {"dense": -1.0, "graph": 0.0, "lexical": 0.0}


def fused(
    name: str,
    method: str,
    legs: Sequence[str] = LEGS,
    grid: Sequence[Options] = ({},),
    **options: Any,
) -> Arm:
    """``hf.fuse`` of some legs with pools of those lengths, unless the options or the grid say otherwise."""
    fixed = {"pool": tuple(POOLS[leg] for leg in legs), **options}

    def run(found: Legs, chosen: Options) -> hf.Hits:
        return hf.fuse([found.lists[leg] for leg in legs], method=method, k=K, **{**fixed, **chosen})

    return Arm(name, run, grid)


def convex(name: str, legs: Sequence[str], grid: Sequence[Options]) -> Arm:
    """TM2C2: a convex combination of scores between the least that a leg can give and the largest of its list."""
    scale = hf.fusion.Calibration("theoretical_min_max", lower=tuple(LOWER[leg] for leg in legs))
    return fused(name, "linear", legs, grid, calibration=scale)


def walk(found: Legs, edge_types: Sequence[float], depth: int) -> hf.Hits:
    """The graph leg, over the linked graph with a weight for each of its edge types."""
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
