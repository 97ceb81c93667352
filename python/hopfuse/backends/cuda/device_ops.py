"""The ops on arrays that are on the device already, results staying there."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Corpus, Graph
from ..arguments import PprQueries
from . import dense, fusion, ppr
from .ppr_topk import Answers
from .runtime import DeviceArray, Runtime

#: kernels/include/hopfuse/query_status.h
FAULTS = {
    -1: "query {row} has a NaN, an infinite entry, or values too large to score in float32",
    -2: "query {row} is the zero vector (or vanishes in float32), which has no cosine; leave it out",
    -3: "seed row {row} has a node outside the graph; ids are those of its nodes, -1 is padding",
    -4: "seed row {row} has a weight that is negative, NaN or infinite, or a sum beyond float64",
    -5: "seed row {row} has a node more than once; add its weights up",
    -6: "seed row {row} has no seed with weight > 0; leave it out of the batch, or say empty='skip'",
}


def raise_fault(status: NDArray[np.int32]) -> None:
    """The error of the first query that has one."""
    bad = np.flatnonzero(status < 0)
    if bad.size:
        raise InputError(FAULTS[int(status[bad[0]])].format(row=int(bad[0])))


class DeviceOps:
    """Each op queues its work and returns device arrays.

    What a kernel finds wrong with a query raises InputError, or inside a capture, where nothing can be read back, goes to
    :meth:`watch`'s list as the query's status: kernels/include/hopfuse/query_status.h.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._thread = threading.local()
        self.last: dict[str, dict[str, Any]] = {}

    def watch(self) -> list[DeviceArray]:
        """A new list; statuses (B,) int32 of this thread's ops go there from now on."""
        self._thread.statuses = []
        statuses: list[DeviceArray] = self._thread.statuses
        return statuses

    def record(self, op: str, **more: Any) -> None:
        """Note a call for ``explain()``."""
        self.last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    def settle(self, status: DeviceArray) -> None:
        """Raise what a query's status says, or leave it to the capture."""
        if self.runtime.fixed:
            self._thread.statuses.append(status)
        else:
            raise_fault(self.runtime.download(status))

    def ppr(self, graph: Graph, queries: PprQueries, scores: Any, *, on_host: bool = False) -> Answers:
        answers = ppr.ppr(self.runtime, graph, queries, scores, on_host=on_host)
        self.settle(answers.status) if queries.seeds is not None else None
        self.record("ppr_f32", queries=queries.damping.size)
        return answers

    def ppr_topk(
        self, graph: Graph, queries: PprQueries, k: int, among: NDArray[np.int32] | None, stop_when_proven: bool
    ) -> Answers:
        answers = ppr.ppr_topk(self.runtime, graph, queries, k, among, stop_when_proven and not self.runtime.fixed)
        if queries.seeds is not None:
            self.settle(answers.status)
        self.record("ppr_f32", queries=queries.damping.size)
        return answers

    def dense_topk(self, queries: DeviceArray, corpus: Corpus, k: int, **allowed: Any) -> dict[str, DeviceArray]:
        hits, rescored = dense.dense_topk(self.runtime, queries, corpus, k, **allowed)
        self.settle(hits.status)
        name = f"dense_topk_{'f32' if corpus.storage == 'float32' else 'f16'}"
        self.record(name, queries=int(queries.shape[0]), rescored_rows=rescored)
        return {"ids": hits.ids, "scores": hits.scores, "counts": hits.counts}

    def calibrate(self, scores: DeviceArray, counts: DeviceArray, *, method: str, ties: str) -> DeviceArray:
        out = fusion.calibrate(self.runtime, scores, counts, method=method, ties=ties)
        self.record("calibrate_f32", queries=int(scores.shape[0]), method=method)
        return out

    def fuse(self, lists: list[fusion.DeviceList], *, method: str, **options: Any) -> dict[str, DeviceArray]:
        hits = fusion.fuse(self.runtime, lists, method=method, **options)
        self.record("fuse_f32", queries=int(lists[0][0].shape[0]), method=method, lists=len(lists))
        return hits
