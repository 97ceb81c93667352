"""What an op hands to a backend: checked, in the backend's terms."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

#: How names of dense kernels say the precision of the originals.
DENSE_SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def thread_count(threads: int | None) -> int:
    """``threads=``, else HOPFUSE_NUM_THREADS, else the processors that this process may use."""
    if threads is None:
        text = os.environ.get("HOPFUSE_NUM_THREADS", "")
        if not text:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not text.isdecimal() or not 1 <= int(text) <= 1024:
            raise InputError(f"HOPFUSE_NUM_THREADS is {text!r}; it must be a whole number from 1 to 1024")
        return int(text)
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= 1024:
        raise InputError(f"threads is {threads!r}; it must be a whole number from 1 to 1024, or None")
    return int(threads)


#: Of a projection: what no score may be.
SUM_BEYOND = "query {row} has a sum beyond float32; scale its scores down"


class DeviceSeeds(NamedTuple):
    """Restarts on a device, not yet read: (B, S) node ids of the caller, int64, -1 for none, and float64 weights."""

    node: Any
    weight: Any
    may_be_empty: bool  # a query without seeds gets no hits; otherwise it is an error


class PprQueries(NamedTuple):
    """A checked batch: restarts by internal node, and the options of each query.

    With ``seeds`` the restarts are there, and ``indptr``, ``node`` and ``value`` are empty.
    """

    indptr: NDArray[np.int64]
    node: NDArray[np.int32]
    value: NDArray[np.float64]
    damping: NDArray[np.float64]
    edge_type_weights: NDArray[np.float64] | None
    per_type: bool
    allowed: NDArray[np.uint8] | None
    tol: float
    max_iter: int
    threads: int
    seeds: DeviceSeeds | None = None

    def take(self, rows: NDArray[np.int64]) -> PprQueries:
        """Some queries of the batch, in order."""
        if rows.size == self.damping.size:
            return self
        length = np.diff(self.indptr)[rows]
        indptr = np.zeros(rows.size + 1, np.int64)
        np.cumsum(length, out=indptr[1:])
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], length)
        return self.options_of(rows)._replace(indptr=indptr, node=self.node[at], value=self.value[at])

    def options_of(self, rows: NDArray[np.int64]) -> PprQueries:
        """The options of some queries, with the restarts of all."""
        return self._replace(
            damping=self.damping[rows],
            edge_type_weights=None if self.edge_type_weights is None else self.edge_type_weights[rows],
            allowed=self.allowed if self.allowed is None or self.allowed.shape[0] == 1 else self.allowed[rows],
        )


class IsingModel(NamedTuple):
    """kernels/include/hopfuse/ising.h, checked."""

    coupling: float
    temperature: float
    relaxation: float
    steps: int
    blend: float


class Evidence(NamedTuple):
    iterations: NDArray[np.int64]
    residual: NDArray[np.float64]
    bound: NDArray[np.float64]
    converged: NDArray[np.uint8]

    @classmethod
    def empty(cls, batch: int) -> Evidence:
        return cls(np.zeros(batch, np.int64), np.zeros(batch), np.zeros(batch), np.ones(batch, np.uint8))
