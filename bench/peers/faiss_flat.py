"""faiss' exact index over float32 vectors."""

from __future__ import annotations

import numpy as np

from ..cases.dense import Dense
from ..gate import Rankings
from .base import Peer


class FaissFlat(Peer):
    """``IndexFlatIP``."""

    packages = ("faiss-cpu",)
    modules = ("faiss",)

    def __init__(self, workload: Dense, threads: int) -> None:
        import faiss

        faiss.omp_set_num_threads(threads)
        self.workload = workload
        self.index = faiss.IndexFlatIP(workload.vectors.shape[1])
        self.index.add(workload.vectors)

    def run(self, batch: int) -> Rankings:
        scores, ids = self.index.search(self.workload.queries[:batch], self.workload.k)
        return Rankings(ids.astype(np.int64, copy=False), scores)
