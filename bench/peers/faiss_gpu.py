"""faiss' exact index over float32 vectors on a GPU."""

from __future__ import annotations

import numpy as np

from ..cases.dense import Dense
from ..errors import UnavailableError
from ..gate import Rankings
from .gpu import GpuPeer


class FaissGpu(GpuPeer):
    """``GpuIndexFlatIP`` in float32; queries and hits are NumPy arrays, which ``search`` copies."""

    packages = ("faiss-gpu-cu12", "faiss-gpu")
    modules = ("faiss",)
    remark = "on the GPU"

    @classmethod
    def devices(cls) -> int:
        import faiss

        if not hasattr(faiss, "GpuIndexFlatIP"):
            raise UnavailableError("the installed faiss has no GPU code; use an environment with faiss-gpu-cu12")
        return int(faiss.get_num_gpus())

    def __init__(self, workload: Dense, threads: int) -> None:
        import faiss

        faiss.omp_set_num_threads(threads)
        self.workload = workload
        self.resources = faiss.StandardGpuResources()
        self.index = faiss.GpuIndexFlatIP(self.resources, workload.vectors.shape[1], faiss.GpuIndexFlatConfig())
        self.index.add(workload.vectors)

    def run(self, batch: int) -> Rankings:
        scores, ids = self.index.search(self.workload.queries[:batch], self.workload.k)
        return Rankings(ids.astype(np.int64, copy=False), scores)
