"""The ops on arrays that are on the device already, results staying there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Corpus, Graph, Incidence, LabelSets
from ..arguments import DENSE_SUFFIXES, SUM_BEYOND, IsingModel, PprQueries
from . import dense, dice, fusion, ising, ppr, projection
from .ppr_topk import Answers
from .residents import residents
from .runtime import DeviceArray, Runtime

SEED_THREADS = 128
#: kernels/include/hopfuse/query_status.h
FAULTS = {
    -1: "query {row} has a NaN, an infinite entry, or values too large to score in float32",
    -2: "query {row} is the zero vector (or vanishes in float32), which has no cosine; leave it out",
    -3: "seed row {row} has a node outside the graph; ids are those of its nodes, -1 is padding",
    -4: "seed row {row} has a weight that is negative, NaN or infinite, or a sum beyond float64",
    -5: "seed row {row} has a node more than once; add its weights up",
    -6: "seed row {row} has no seed with weight > 0; leave it out of the batch, or say empty='skip'",
    -7: "row {row} has a document outside the graph; documents are its nodes",
    -8: SUM_BEYOND,
    -9: "row {row} has a score that is NaN or infinite; scores are finite float32 numbers",
}


def raise_fault(status: NDArray[np.int32], first: int = 0) -> None:
    """The error of the first query that has one; ``first`` is the number of query 0."""
    bad = np.flatnonzero(status < 0)
    if bad.size:
        raise InputError(FAULTS[int(status[bad[0]])].format(row=first + int(bad[0])))


class Watched(NamedTuple):
    """What a capture must know of its ops."""

    statuses: list[DeviceArray]  # (B,) int32
    residents: list[Any]  # what they read of graphs and corpora


class DeviceOps:
    """Each op queues its work and returns device arrays.

    What a kernel finds wrong with a query raises InputError, or inside a capture, where nothing can be read back, goes
    to :meth:`watching`'s list as the query's status: kernels/include/hopfuse/query_status.h.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._thread = threading.local()
        self.last: dict[str, dict[str, Any]] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watched]:
        """Collect what this thread's captured ops leave to the capture."""
        self._thread.watched = Watched([], [])
        try:
            yield self._thread.watched
        finally:
            del self._thread.watched

    def adopt(self, array: Any, name: str) -> DeviceArray:
        """A caller's array, if it is on this device."""
        if not self.runtime.is_device_array(array):
            raise InputError(f"{name} is on the host, and other arrays on a device; all must be there")
        return self.runtime.adopt(array)

    def record(self, op: str, **more: Any) -> None:
        """Note a call for ``explain()``."""
        self.last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    def settle(self, status: DeviceArray) -> None:
        """Raise what a query's status says, or leave it to the capture."""
        if self.runtime.fixed:
            self._thread.watched.statuses.append(status)
        else:
            raise_fault(self.runtime.download(status))

    def _keep(self, held: Graph | Corpus | Incidence) -> None:
        """A recording reads what stays on the device by its address: it must not go before the recording does."""
        if self.runtime.fixed:
            self._thread.watched.residents.extend(residents(self.runtime, held))

    def ppr(self, graph: Graph, queries: PprQueries, scores: Any, *, on_host: bool = False) -> Answers:
        answers = ppr.ppr(self.runtime, graph, queries, scores, on_host=on_host)
        self._keep(graph)
        if queries.seeds is not None:
            self.settle(answers.status)
        self.record("ppr_f32", queries=queries.damping.size)
        return answers

    def ppr_topk(
        self, graph: Graph, queries: PprQueries, k: int, among: NDArray[np.int32] | None, stop_when_proven: bool
    ) -> Answers:
        answers = ppr.ppr_topk(self.runtime, graph, queries, k, among, stop_when_proven)
        self._keep(graph)
        if queries.seeds is not None:
            self.settle(answers.status)
        self.record("ppr_f32", queries=queries.damping.size)
        return answers

    def dense_topk(self, queries: DeviceArray, corpus: Corpus, k: int, **allowed: Any) -> dict[str, DeviceArray]:
        hits, rescored = dense.dense_topk(self.runtime, queries, corpus, k, **allowed)
        self._keep(corpus)
        self.settle(hits.status)
        how: dict[str, Any] = {"storage": corpus.storage}
        if corpus.storage == "int8":
            how["resident"] = f"the originals, in {corpus.precision}; 8-bit codes are the CPU's alone"
        name = f"dense_topk_{DENSE_SUFFIXES[corpus.precision]}"
        self.record(name, **how, queries=int(queries.shape[0]), rescored_rows=rescored)
        return {"ids": hits.ids, "scores": hits.scores, "counts": hits.counts}

    def calibrate(
        self, scores: DeviceArray, counts: DeviceArray, *, method: str, ties: str, option: NDArray[np.float32]
    ) -> DeviceArray:
        out = fusion.calibrate(self.runtime, scores, counts, method=method, ties=ties, option=option)
        self.record("calibrate_f32", queries=int(scores.shape[0]), method=method)
        return out

    def fuse(self, lists: list[fusion.DeviceList], *, method: str, **options: Any) -> dict[str, DeviceArray]:
        hits = fusion.fuse(self.runtime, lists, method=method, **options)
        self.record("fuse_f32", queries=int(lists[0][0].shape[0]), method=method, lists=len(lists))
        return hits

    def ising(self, graph: Graph, hits: fusion.DeviceList, model: IsingModel, *, k: int) -> dict[str, DeviceArray]:
        best, status = ising.ising(self.runtime, graph, hits, model, k)
        self._keep(graph)
        self.settle(status)
        self.record("ising_f32", queries=int(hits[0].shape[0]))
        return best

    def dice(
        self,
        labels: LabelSets,
        query_indptr: NDArray[np.int64],
        query_units: NDArray[np.int32],
        candidates: NDArray[np.int32],
        indptr: NDArray[np.int64],
    ) -> DeviceArray:
        """Of arrays on the host: texts are there."""
        scores = dice.dice(self.runtime, labels, query_indptr, query_units, candidates, indptr)
        self.record("dice_f32", queries=indptr.size - 1, candidates=candidates.shape[0])
        return scores

    def project(self, incidence: Incidence, scores: DeviceArray, scale: NDArray[np.float32] | None) -> DeviceArray:
        out, status = projection.project(self.runtime, incidence, scores, scale)
        self._keep(incidence)
        self.settle(status)
        self.record("project_f32", queries=int(scores.shape[0]), rows=incidence.num_rows)
        return out

    def project_topk(
        self, incidence: Incidence, scores: DeviceArray, scale: NDArray[np.float32] | None, k: int
    ) -> dict[str, DeviceArray]:
        hits = projection.project_topk(self.runtime, incidence, scores, scale, k)
        self._keep(incidence)
        self.settle(hits.status)
        self.record("project_f32", queries=int(scores.shape[0]), rows=incidence.num_rows)
        return {"ids": hits.ids, "scores": hits.scores, "counts": hits.counts}

    def seed_hits(
        self,
        node: DeviceArray,
        weight: DeviceArray,
        ids: DeviceArray,
        scores: DeviceArray,
        counts: DeviceArray,
        mass: float,
    ) -> tuple[DeviceArray, DeviceArray]:
        (batch, width), k = node.shape, int(ids.shape[1])
        nodes = self.runtime.empty((batch, width + k), np.int64)
        weights = self.runtime.empty((batch, width + k), np.float64)
        if batch and width + k:
            hits = [ids, scores, counts, np.int32(k), np.float64(mass)]
            arguments = [node, weight, np.int32(width), *hits, nodes, weights]
            self.runtime.launch("seed_hits_f64", int(batch), SEED_THREADS, arguments)
        return nodes, weights
