"""HippoRAG 2's retrieval as its paper describes it, one question at a time: NumPy, then igraph's PRPACK."""

from __future__ import annotations

import numpy as np

from ..cases.hipporag import HippoRag
from ..gate import Rankings
from .base import MIXED, Peer


class HippoRagIgraph(Peer):
    """Similarities to all passages, scaled into the restart; ``personalized_pagerank``; all passages sorted.

    "From RAG to Memory", arXiv 2502.14802, section 3.4; written from the formulas there.
    """

    packages = ("igraph", "numpy")
    modules = ("igraph",)
    remark = "one question after the other; the walk on one thread (its only way)"
    runs_on = MIXED
    stops = "float64, an error of about 10⁻¹⁰, which cannot be changed"

    def __init__(self, workload: HippoRag, threads: int) -> None:
        import igraph

        self.workload = workload
        src, dst, weight, _ = workload.graph.edges()
        self.graph = igraph.Graph(workload.graph.num_nodes, np.stack([src, dst], axis=1).tolist())
        self.weights = weight.astype(np.float64).tolist()

    def timed_queries(self, batch: int) -> int:
        return min(batch, 8)

    def run(self, batch: int) -> Rankings:
        n, workload = self.timed_queries(batch), self.workload
        ids, scores = np.empty((n, workload.k), np.int64), np.empty((n, workload.k))
        for row in range(n):
            walked = self.graph.personalized_pagerank(
                damping=workload.damping,
                reset=workload.restart(row).tolist(),
                weights=self.weights,
                implementation="prpack",
            )
            passages = np.array(walked[: workload.num_passages])
            ids[row] = np.argsort(-passages, kind="stable")[: workload.k]
            scores[row] = passages[ids[row]]
        return Rankings(ids, scores)
