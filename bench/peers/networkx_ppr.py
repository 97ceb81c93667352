"""networkx's ``pagerank``, called for each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import ONE, Peer
from .walk import adjacency


class NetworkxPpr(Peer):
    """Power iteration in float64 over a SciPy matrix, which each call makes from the graph.

    It stops if the L1 change of a pass is below N tol; the mass of dangling nodes returns to the seeds.
    """

    packages = ("networkx", "scipy")
    modules = ("networkx", "scipy.sparse")
    remark = "one call a query, which also makes the matrix; one thread"
    runs_on = ONE
    stops = "float64, an L1 residual of (1 − d) · 10⁻⁶"

    def __init__(self, workload: Ppr, threads: int) -> None:
        import networkx

        self.workload = workload
        self.graph = networkx.from_scipy_sparse_array(adjacency(workload))

    def timed_queries(self, batch: int) -> int:
        return 1

    def run(self, batch: int) -> Any:
        import networkx

        workload = self.workload
        nodes, values = workload.seeds[0]
        least = (1 - workload.damping) * workload.tol / workload.graph.num_nodes
        ranks = networkx.pagerank(
            self.graph,
            alpha=workload.damping,
            personalization=dict(zip(nodes.tolist(), values.tolist(), strict=True)),
            max_iter=1000,
            tol=least,
        )
        return workload.finish(np.array([[ranks[node] for node in range(workload.graph.num_nodes)]]))
