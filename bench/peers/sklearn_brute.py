"""scikit-learn's brute-force neighbours."""

from __future__ import annotations

import numpy as np

from ..cases.dense import Dense
from ..gate import Rankings
from .base import Peer


class SklearnBrute(Peer):
    """Euclidean neighbours, which for unit vectors are those by inner product: x.y = 1 - |x - y|^2 / 2."""

    packages = ("scikit-learn",)
    modules = ("sklearn.neighbors",)
    remark = "Euclidean distances of unit vectors"

    def __init__(self, workload: Dense, threads: int) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.workload = workload
        self.index = NearestNeighbors(algorithm="brute", metric="euclidean", n_jobs=threads).fit(workload.vectors)

    def run(self, batch: int) -> Rankings:
        distances, ids = self.index.kneighbors(self.workload.queries[:batch], self.workload.k)
        return Rankings(ids.astype(np.int64), (1.0 - np.square(distances) / 2.0).astype(np.float32))
