"""SciPy's batched power iteration: CSR ``A @ X`` in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import Peer


class ScipyPpr(Peer):
    """X <- d P'X + (1 - d) S until every column's L1 residual is at most (1 - d) tol."""

    packages = ("scipy",)
    modules = ("scipy.sparse",)
    remark = "SciPy's sparse product runs on one thread"

    def __init__(self, workload: Ppr, threads: int) -> None:
        import scipy.sparse as sp

        self.workload = workload
        src, dst, weight, _ = workload.graph.edges()
        n, loop = workload.graph.num_nodes, src == dst
        row = np.concatenate([src, dst[~loop]])
        col = np.concatenate([dst, src[~loop]])
        both = np.concatenate([weight, weight[~loop]]).astype(np.float64)
        degree = np.bincount(col, weights=both, minlength=n)
        scaled = workload.damping * both / degree[col]
        self.operator = sp.csr_array((scaled.astype(np.float32), (row, col)), shape=(n, n))
        self.operator.sort_indices()

    def run(self, batch: int) -> Any:
        d, tol, n = self.workload.damping, self.workload.tol, self.workload.graph.num_nodes
        restart = np.zeros((n, batch), np.float32)
        for column, seeds in enumerate(self.workload.restarts[:batch]):
            total = sum(seeds.values())
            for node, value in seeds.items():
                restart[node, column] = value / total
        x, restart = restart, (1 - d) * restart
        while True:
            step = self.operator @ x
            step += restart
            np.subtract(step, x, out=x)
            residual = np.abs(x, out=x).sum(axis=0)
            x = step
            if (residual <= (1 - d) * tol).all():
                return self.workload.finish(x.T)
