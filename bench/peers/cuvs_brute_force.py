"""cuVS' exact search on a GPU."""

from __future__ import annotations

from ..cases.dense import Dense
from ..gate import Rankings
from .gpu import CupyPeer


class CuvsBruteForce(CupyPeer):
    """``cuvs.neighbors.brute_force`` in float32 by inner product, whose distances are the products."""

    packages = ("cuvs-cu12", "cuvs-cu13", *CupyPeer.packages)
    modules = ("cuvs.neighbors.brute_force", "cupy")
    remark = "on the GPU"

    def __init__(self, workload: Dense, threads: int) -> None:
        import cupy
        from cuvs.neighbors import brute_force

        self.workload = workload
        self.index = brute_force.build(cupy.asarray(workload.vectors), metric="inner_product")

    def run(self, batch: int) -> Rankings:
        import cupy
        from cuvs.neighbors import brute_force

        queries = cupy.asarray(self.workload.queries[:batch])
        scores, ids = brute_force.search(self.index, queries, self.workload.k)
        return Rankings(*map(self.to_host, (cupy.asarray(ids), cupy.asarray(scores))))
