"""A numba kernel: batched power iteration over CSR rows on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cases.ppr import Ppr
from .base import SAME_TEST, Peer
from .walk import damped_operator, most_passes, restart_columns


class NumbaPpr(Peer):
    """A typical numba implementation: rows in parallel, the batch in the inner loop."""

    packages = ("numba",)
    modules = ("numba",)
    remark = "compiled before it is timed"
    stops = SAME_TEST

    def __init__(self, workload: Ppr, threads: int) -> None:
        import numba

        numba.set_num_threads(threads)
        self.workload, self.operator = workload, damped_operator(workload)
        self.one_pass = _compiled()

    def run(self, batch: int) -> Any:
        workload, operator = self.workload, self.operator
        least = (1 - workload.damping) * workload.tol
        x = restart_columns(workload, batch)
        restart, following = np.float32(1 - workload.damping) * x, np.empty_like(x)
        change = np.empty_like(restart)
        for _ in range(most_passes(workload.damping, workload.tol)):
            self.one_pass(operator.indptr, operator.indices, operator.data, restart, x, following, change)
            x, following = following, x
            if (change.sum(axis=0) <= least).all():
                break
        return workload.finish(x.T)


def _compiled() -> Any:
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def one_pass(indptr: Any, indices: Any, data: Any, restart: Any, x: Any, following: Any, change: Any) -> None:
        for row in numba.prange(restart.shape[0]):
            for b in range(restart.shape[1]):
                following[row, b] = restart[row, b]
            for entry in range(indptr[row], indptr[row + 1]):
                weight, source = data[entry], indices[entry]
                for b in range(restart.shape[1]):
                    following[row, b] += weight * x[source, b]
            for b in range(restart.shape[1]):
                change[row, b] = abs(following[row, b] - x[row, b])

    return one_pass
