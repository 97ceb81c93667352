"""CuPy's batched power iteration: cuSPARSE CSR ``A @ X`` in float32 on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .gpu import CupyPeer
from .walk import damped_operator, power_iteration, shares


class CupySpmm(CupyPeer):
    """The matrix and loop of the SciPy peer, with column-major states, which suit cuSPARSE's product.

    Only seeds are copied to the device: the dense block of restarts is made there, and passages are ranked there.
    """

    packages = ("scipy", *CupyPeer.packages)
    modules = ("cupyx.scipy.sparse", "cupy", "scipy.sparse")
    remark = "on the GPU; a comparison on the host in each pass"

    def __init__(self, workload: Ppr, threads: int) -> None:
        from cupyx.scipy.sparse import csr_matrix

        self.workload = workload
        self.operator = csr_matrix(damped_operator(workload))

    def run(self, batch: int) -> Any:
        import cupy

        workload = self.workload
        rows = [shares(seeds) for seeds in workload.seeds[:batch]]
        column = np.repeat(np.arange(batch), [len(node) for node, _ in rows])
        node, share = (cupy.asarray(np.concatenate(parts)) for parts in zip(*rows, strict=True))
        restart = cupy.zeros((workload.graph.num_nodes, batch), np.float32, order="F")
        restart[node, cupy.asarray(column)] = share
        scores = power_iteration(self.operator, restart, workload.damping, workload.tol)
        return self.to_host(workload.finish(scores.T))
