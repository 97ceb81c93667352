"""NumPy: one matrix product (OpenBLAS), then argpartition."""

from __future__ import annotations

from ..cases.dense import Dense
from ..cases.ranked import top_k
from ..gate import Rankings
from .base import MIXED, Peer


class NumpyMatmul(Peer):
    """All scores at once, (B, N) float32."""

    packages = ("numpy",)
    remark = "the product runs on all threads, argpartition on one"
    runs_on = MIXED

    def __init__(self, workload: Dense, threads: int) -> None:
        self.workload = workload
        self.transposed = workload.vectors.T

    def run(self, batch: int) -> Rankings:
        return top_k(self.workload.queries[:batch] @ self.transposed, self.workload.k)
