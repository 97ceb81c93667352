"""cuGraph's ``personalized_pagerank`` on a GPU, called for each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .gpu import CupyPeer
from .walk import shares, stored_entries


class CugraphPpr(CupyPeer):
    """``pylibcugraph``, without the data frames that ``cugraph.pagerank`` adds.

    ``alpha`` is hopfuse's damping, and the mass of dangling nodes returns to the seeds, as in hopfuse. It uses power
    iteration from the uniform vector, in float32, until the L1 change of a pass is below ``epsilon``, without an error
    bound. The error is at most d / (1 - d) times that change, so epsilon is (1 - d) / d times hopfuse's tol.
    """

    packages = ("pylibcugraph-cu12", "pylibcugraph-cu13", *CupyPeer.packages)
    modules = ("pylibcugraph", "cupy")
    remark = "on the GPU; one call a query, one after the other (its only way)"

    def __init__(self, workload: Ppr, threads: int) -> None:
        import cupy
        import pylibcugraph as cugraph

        self.workload, self.cugraph = workload, cugraph
        src, dst, weight = (
            cupy.asarray(part.astype(kind))
            for part, kind in zip(stored_entries(workload), (np.int32, np.int32, np.float32), strict=True)
        )
        self.handle = cugraph.ResourceHandle()
        properties = cugraph.GraphProperties(is_symmetric=True, is_multigraph=False)
        nodes = cupy.arange(workload.graph.num_nodes, dtype=np.int32)  # those without an edge too
        self.graph = cugraph.SGGraph(
            self.handle, properties, src, dst, weight_array=weight, store_transposed=True, renumber=True,
            do_expensive_check=False, vertices_array=nodes,
        )  # fmt: skip

    def run(self, batch: int) -> Any:
        import cupy

        damping, tol = self.workload.damping, self.workload.tol
        scores = cupy.empty((batch, self.workload.graph.num_nodes), np.float32)
        for row, seeds in enumerate(self.workload.seeds[:batch]):
            node, share = map(cupy.asarray, shares(seeds))
            vertices, values = self.cugraph.personalized_pagerank(
                self.handle, self.graph, None, None, None, None, node, share, alpha=damping,
                epsilon=tol * (1 - damping) / damping, max_iterations=500, do_expensive_check=False,
            )  # fmt: skip
            scores[row, cupy.asarray(vertices)] = cupy.asarray(values)
        return self.to_host(self.workload.finish(scores))
