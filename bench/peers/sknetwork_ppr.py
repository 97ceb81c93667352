"""scikit-network's ``PageRank``, called for each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import ONE, Peer
from .walk import adjacency


class SknetworkPpr(Peer):
    """Power iteration in Cython, float64, until the L1 change of a pass is below tol."""

    packages = ("scikit-network",)
    modules = ("sknetwork.ranking",)
    remark = "one call a query, one thread"
    runs_on = ONE
    stops = "float64, an L1 residual of (1 − d) · 10⁻⁶"

    def __init__(self, workload: Ppr, threads: int) -> None:
        from sknetwork.ranking import PageRank

        self.workload, self.matrix = workload, adjacency(workload)
        least = (1 - workload.damping) * workload.tol
        self.solver = PageRank(damping_factor=workload.damping, solver="piteration", n_iter=1000, tol=least)

    def timed_queries(self, batch: int) -> int:
        return min(batch, 8)

    def run(self, batch: int) -> Any:
        n = self.timed_queries(batch)
        rows = [
            self.solver.fit_predict(self.matrix, weights=dict(zip(nodes.tolist(), values.tolist(), strict=True)))
            for nodes, values in self.workload.seeds[:n]
        ]
        return self.workload.finish(np.stack(rows))
