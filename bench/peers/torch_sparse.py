"""PyTorch's batched power iteration on the CPU: CSR ``A @ X`` in float32."""

from __future__ import annotations

import warnings
from typing import Any

from ..cases.ppr import Ppr
from .base import SAME_TEST, Peer
from .walk import damped_operator, most_passes, restart_columns


class TorchSparse(Peer):
    """The SciPy peer's matrix and test as ``torch.sparse_csr_tensor`` (MKL's or PyTorch's own product)."""

    packages = ("torch", "scipy")
    modules = ("torch", "scipy.sparse")
    stops = SAME_TEST

    def __init__(self, workload: Ppr, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.workload = workload
        matrix = damped_operator(workload)
        parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that CSR tensors are in beta
            self.operator = torch.sparse_csr_tensor(*parts, size=matrix.shape)

    def run(self, batch: int) -> Any:
        import torch

        workload = self.workload
        x = torch.from_numpy(restart_columns(workload, batch))
        restart, least = (1 - workload.damping) * x, (1 - workload.damping) * workload.tol
        for _ in range(most_passes(workload.damping, workload.tol)):
            step = torch.addmm(restart, self.operator, x)
            change = (step - x).abs_().sum(dim=0)
            x = step
            if bool((change <= least).all()):
                break
        return workload.finish(x.numpy().T)
