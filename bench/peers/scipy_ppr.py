"""SciPy's batched power iteration: CSR ``A @ X`` in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import Peer
from .walk import damped_operator, power_iteration, shares


class ScipyPpr(Peer):
    """A block of queries, until the last of them has converged."""

    packages = ("scipy",)
    modules = ("scipy.sparse",)
    remark = "SciPy's sparse product runs on one thread"

    def __init__(self, workload: Ppr, threads: int) -> None:
        self.workload = workload
        self.operator = damped_operator(workload)

    def run(self, batch: int) -> Any:
        workload = self.workload
        restart = np.zeros((workload.graph.num_nodes, batch), np.float32)
        for column, seeds in enumerate(workload.restarts[:batch]):
            node, share = shares(seeds)
            restart[node, column] = share
        return workload.finish(power_iteration(self.operator, restart, workload.damping, workload.tol).T)
