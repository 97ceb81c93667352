"""SciPy's batched power iteration: CSR ``A @ X`` in float32."""

from __future__ import annotations

from typing import Any

from ..cases.ppr import Ppr
from .base import ONE, SAME_TEST, Peer
from .walk import damped_operator, power_iteration, restart_columns

#: Stored entries from which on a product takes about a second.
LARGE = 5_000_000


class ScipyPpr(Peer):
    """A block of queries, iterated until all of them have converged."""

    packages = ("scipy",)
    modules = ("scipy.sparse",)
    remark = "SciPy's sparse product runs on one thread"
    runs_on = ONE
    stops = SAME_TEST

    def __init__(self, workload: Ppr, threads: int) -> None:
        self.workload = workload
        self.operator = damped_operator(workload)

    def timed_queries(self, batch: int) -> int:
        return batch if self.workload.graph.num_stored < LARGE else min(batch, 16)

    def run(self, batch: int) -> Any:
        workload = self.workload
        restart = restart_columns(workload, self.timed_queries(batch))
        return workload.finish(power_iteration(self.operator, restart, workload.damping, workload.tol).T)
