"""SciPy's sparse product: CSR ``A @ X.T`` in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.projection import Projection
from .base import ONE, Peer


class ScipyProduct(Peer):
    """All queries at once; the result is transposed back to rows."""

    packages = ("scipy",)
    modules = ("scipy.sparse",)
    remark = "SciPy's sparse product runs on one thread"
    runs_on = ONE

    def __init__(self, workload: Projection, threads: int) -> None:
        from scipy.sparse import csr_array

        incidence = workload.incidence
        shape = (incidence.num_rows, incidence.num_columns)
        self.scores = workload.scores
        self.matrix = csr_array((incidence.weights, incidence.indices, incidence.indptr), shape=shape)

    def run(self, batch: int) -> Any:
        return np.ascontiguousarray((self.matrix @ self.scores[:batch].T).T)
