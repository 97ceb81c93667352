"""PyTorch on the CPU: one matrix product, then ``torch.topk``."""

from __future__ import annotations

from ..cases.dense import Dense
from ..gate import Rankings
from .base import Peer


class TorchMatmul(Peer):
    """All scores at once, (B, N) float32."""

    packages = ("torch",)
    modules = ("torch",)

    def __init__(self, workload: Dense, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.workload = workload
        self.transposed = torch.from_numpy(workload.vectors).T

    def run(self, batch: int) -> Rankings:
        import torch

        best = torch.topk(torch.from_numpy(self.workload.queries[:batch]) @ self.transposed, self.workload.k, dim=1)
        return Rankings(best.indices.numpy(), best.values.numpy())
