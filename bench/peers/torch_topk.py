"""PyTorch on a GPU: one matrix product, then ``torch.topk``."""

from __future__ import annotations

from ..cases.dense import Dense
from ..gate import Rankings
from .gpu import GpuPeer


class TorchTopk(GpuPeer):
    """All scores at once, (B, N) float32; TensorFloat-32 is off, as by default."""

    packages = ("torch",)
    modules = ("torch",)
    remark = "on the GPU"
    device = "cuda"

    @classmethod
    def devices(cls) -> int:
        import torch

        return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0

    def __init__(self, workload: Dense, threads: int) -> None:
        import torch

        self.workload = workload
        self.transposed = torch.from_numpy(workload.vectors).to(self.device).T

    def run(self, batch: int) -> Rankings:
        import torch

        queries = torch.from_numpy(self.workload.queries[:batch]).to(self.device)
        best = torch.topk(queries @ self.transposed, self.workload.k, dim=1)
        return Rankings(best.indices.cpu().numpy(), best.values.cpu().numpy())
