"""SuiteSparse:GraphBLAS' batched power iteration: sparse times dense in float32."""

from __future__ import annotations

from typing import Any

from ..cases.ppr import Ppr
from .base import SAME_TEST, Peer
from .walk import damped_operator, most_passes, restart_columns


class GraphblasPpr(Peer):
    """``A.mxm(X, plus_times)`` added to the restarts, with the SciPy peer's matrix and test after each pass."""

    packages = ("python-graphblas", "suitesparse-graphblas", "scipy")
    modules = ("graphblas", "scipy.sparse")
    stops = SAME_TEST

    def __init__(self, workload: Ppr, threads: int) -> None:
        import graphblas as gb

        gb.ss.config["nthreads"] = threads
        self.workload = workload
        self.operator = gb.io.from_scipy_sparse(damped_operator(workload))

    def run(self, batch: int) -> Any:
        from graphblas import Matrix, binary, monoid, semiring, unary

        workload = self.workload
        start = restart_columns(workload, batch)
        x, restart = Matrix.from_dense(start), Matrix.from_dense((1 - workload.damping) * start)
        least = (1 - workload.damping) * workload.tol
        for _ in range(most_passes(workload.damping, workload.tol)):
            step = restart.dup()
            step(binary.plus) << self.operator.mxm(x, semiring.plus_times)
            change = step.ewise_mult(x, binary.minus).new()
            change << change.apply(unary.abs)
            x = step
            if (change.reduce_columnwise(monoid.plus).new().to_dense(0) <= least).all():
                break
        return workload.finish(x.to_dense(0).T)
