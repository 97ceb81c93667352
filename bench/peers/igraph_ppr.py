"""python-igraph's ``personalized_pagerank`` (PRPACK), called for each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import ONE, Peer

#: Stored entries from which on a query takes about a second.
LARGE = 5_000_000


class IgraphPpr(Peer):
    """PRPACK solves to about 1e-10 in float64; it has no batched call and no tolerance option."""

    packages = ("igraph",)
    modules = ("igraph",)
    remark = "one call a query, one thread (its only way)"
    runs_on = ONE
    stops = "float64, an error of about 10⁻¹⁰, which cannot be changed"

    def __init__(self, workload: Ppr, threads: int) -> None:
        import igraph

        self.workload = workload
        src, dst, weight, _ = workload.graph.edges()
        self.graph = igraph.Graph(workload.graph.num_nodes, np.stack([src, dst], axis=1).tolist())
        self.weights = weight.astype(np.float64).tolist()

    def timed_queries(self, batch: int) -> int:
        return min(batch, 8 if self.workload.graph.num_stored < LARGE else 1)

    def run(self, batch: int) -> Any:
        n = self.timed_queries(batch)
        scores = np.empty((n, self.workload.graph.num_nodes), np.float64)
        for row, (nodes, values) in enumerate(self.workload.seeds[:n]):
            reset = np.zeros(scores.shape[1])
            reset[nodes] = values
            scores[row] = self.graph.personalized_pagerank(
                damping=self.workload.damping, reset=reset.tolist(), weights=self.weights, implementation="prpack"
            )
        return self.workload.finish(scores)
