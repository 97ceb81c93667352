"""NumPy: one matrix product of vectors of length 1 (OpenBLAS), then maximum, standard deviation and exp in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.similarity import FLOOR, TAU, Similarity
from .base import MIXED, Peer


class NumpyWeights(Peer):
    """All in float32."""

    packages = ("numpy",)
    remark = "vectors of length 1 are taken as such; the product runs on all threads, the rest on one"
    runs_on = MIXED

    def __init__(self, workload: Similarity, threads: int) -> None:
        self.workload = workload
        self.transposed = workload.vectors.T

    def run(self, batch: int) -> Any:
        weights = self.workload.queries[:batch] @ self.transposed
        spread = TAU * weights.std(axis=1, keepdims=True)
        weights -= weights.max(axis=1, keepdims=True)
        weights /= spread
        np.exp(weights, out=weights)
        return np.maximum(weights, np.float32(FLOOR), out=weights)
