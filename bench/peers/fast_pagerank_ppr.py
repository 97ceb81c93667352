"""fast-pagerank's ``pagerank_power``, called for each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import ONE, Peer
from .walk import adjacency


class FastPagerankPpr(Peer):
    """SciPy's sparse products in float64; it stops by the L2 norm of a pass's change, so the tolerance is small."""

    packages = ("fast-pagerank", "scipy")
    modules = ("fast_pagerank",)
    remark = "one call a query, which also scales the matrix; one thread"
    runs_on = ONE
    stops = "float64, an L2 residual of 10⁻⁸"

    def __init__(self, workload: Ppr, threads: int) -> None:
        self.workload, self.matrix = workload, adjacency(workload)

    def timed_queries(self, batch: int) -> int:
        return min(batch, 4)

    def run(self, batch: int) -> Any:
        from fast_pagerank import pagerank_power

        n, workload = self.timed_queries(batch), self.workload
        rows = np.empty((n, workload.graph.num_nodes))
        for row, (nodes, values) in enumerate(workload.seeds[:n]):
            restart = np.zeros(rows.shape[1])
            restart[nodes] = values
            rows[row] = pagerank_power(self.matrix, p=workload.damping, personalize=restart, tol=1e-2 * workload.tol)
        return workload.finish(rows)
