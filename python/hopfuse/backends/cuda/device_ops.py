"""The device backend: ops over a runtime, for arrays on the host or on the device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import BackendError, InputError
from ...types import Corpus, Graph, Incidence
from ..calls import (
    DENSE_SUFFIXES,
    Array,
    BoostCall,
    CalibrateCall,
    CoverCall,
    DenseCall,
    DiceCall,
    EntitySeedCall,
    Evidence,
    FuseCall,
    HitArrays,
    IsingCall,
    NodeRanking,
    PprQueries,
    ProjectCall,
    SeedCall,
    SimilarityCall,
)
from ..faults import raise_fault
from ..node_weights import NodeWeightCall, NodeWeights
from . import boost, dense, dice, fusion, ising, node_weights, ppr, projection, seeding, similarity
from .ppr_topk import Answers
from .residents import residents
from .runtime import DeviceArray, Runtime

SEED_THREADS = 128


class CaptureLog(NamedTuple):
    """The report of the ops inside a capture."""

    statuses: list[DeviceArray]  # (B,) int32
    residents: list[Any]  # graphs and corpora on the device that the recording reads


class DeviceOps:
    """The ops of the CPU backend, with the same bits, on a device. ``threads`` of calls is ignored.

    Arrays of a call are uploaded and its results downloaded. If a call is ``on_device``, results are device arrays, and
    their work is only queued. A query that a kernel refuses raises InputError; inside a capture, where nothing can be
    read back, its status (kernels/include/hopfuse/query_status.h) goes to :meth:`capture_log`.
    """

    unusable: BackendError | None = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.last: dict[str, dict[str, Any]] = {}
        self._thread = threading.local()

    @property
    def device(self) -> DeviceOps:
        """The backend itself, because it takes arrays on its device."""
        return self

    def explain(self) -> dict[str, Any]:
        """Return the device's entry in :func:`hopfuse.backend_info`."""
        calls = {op: dict(call) for op, call in list(self.last.items())}
        return {**self.runtime.explain(), "last_calls": calls, "error": None}

    @contextlib.contextmanager
    def capture_log(self) -> Iterator[CaptureLog]:
        """Collect what ops report on this thread while it captures."""
        self._thread.log = CaptureLog([], [])
        try:
            yield self._thread.log
        finally:
            del self._thread.log

    def adopt(self, array: Any, name: str) -> DeviceArray:
        """Return a caller's array without a copy; raise if it is not on this device."""
        if not self.runtime.is_device_array(array):
            raise InputError(
                "conflict",
                name,
                "{field} is on the host, but other arrays are on a device; move all of them to one place",
            )
        return self.runtime.adopt(array)

    # ---- Uploads, results and errors -------------------------------------------------------------------------------

    def _up(self, call: Any, *arrays: Array) -> Sequence[DeviceArray]:
        return arrays if call.on_device else self.runtime.upload_all(arrays)

    def _results(
        self,
        call: Any,
        arrays: dict[str, DeviceArray],
        status: DeviceArray | None = None,
        held: Graph | Corpus | Incidence | None = None,
    ) -> dict[str, Array]:
        """Return results where the arrays of the call are, and raise the error of a query's status.

        A recording reads resident graphs and corpora by address, so the capture keeps them alive.
        """
        if self.runtime.fixed:
            self._report(status, held)
            return arrays
        if call.on_device:
            if status is not None:
                raise_fault(self.runtime.download(status))
            return arrays
        found = self.runtime.download_all([*arrays.values(), *([] if status is None else [status])])
        if status is not None:
            raise_fault(found.pop())
        return dict(zip(arrays, found, strict=True))

    def _report(self, status: DeviceArray | None, held: Graph | Corpus | Incidence | None) -> None:
        """Report a status, and what a recording reads, to the capture."""
        if held is not None:
            self._thread.log.residents.extend(residents(self.runtime, held))
        if status is not None:
            self._thread.log.statuses.append(status)

    def _record(self, op: str, **more: Any) -> None:
        """Keep a description of the last call for ``backend_info()``."""
        self.last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    # ---- Ops ---------------------------------------------------------------------------------------------------------

    def ppr(self, graph: Graph, queries: PprQueries, scores: Array) -> Evidence:
        answers = ppr.ppr(self.runtime, graph, queries, scores)
        return Evidence(**self._walked(graph, queries, answers, answers.evidence()))

    def ppr_topk(self, graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]:
        answers = ppr.ppr_topk(self.runtime, graph, queries, ranking)
        hits = self._walked(graph, queries, answers, {**answers.hits(), **answers.evidence()})
        evidence = Evidence(*(hits.pop(name) for name in Evidence._fields))
        if not queries.on_device:
            self.last["ppr_f32"]["proven"] = int(hits["proven"].sum())
        return hits, evidence

    def _walked(
        self, graph: Graph, queries: PprQueries, answers: Answers, arrays: dict[str, DeviceArray]
    ) -> dict[str, Array]:
        found = self._results(queries, arrays, answers.status if queries.on_device else None, graph)
        self._record("ppr_f32", queries=queries.damping.size)
        return found

    def order_weights(self, call: NodeWeightCall) -> NodeWeights:
        """Scale node weights, on the device, to the range that walks read."""
        weights, status = node_weights.order_weights(self.runtime, call)
        if self.runtime.fixed:
            self._report(status, call.graph)
        else:
            raise_fault(self.runtime.download(status))
        return weights

    def add_passage_seeds(self, call: SeedCall) -> tuple[Array, Array]:
        node, weight, *hits = self._up(call, *call[:5])
        (batch, width), k = node.shape, int(hits[0].shape[1])
        room = (int(batch), width + k)
        nodes, weights = self.runtime.empty_all([(room, np.int64), (room, np.float64)])
        if batch and width + k:
            arguments = [node, weight, np.int32(width), *hits, np.int32(k), np.float64(call.mass), nodes, weights]
            self.runtime.launch("add_passage_seeds_f64", int(batch), SEED_THREADS, arguments)
        made = self._results(call, {"nodes": nodes, "weights": weights})
        return made["nodes"], made["weights"]

    def add_entity_seeds(self, call: EntitySeedCall) -> tuple[Array, Array]:
        node, weight, ids, counts = self._up(call, *call[:4])
        there = call._replace(node=node, weight=weight, ids=ids, counts=counts)
        nodes, weights, status = seeding.add_entity_seeds(self.runtime, there)
        made = self._results(call, {"nodes": nodes, "weights": weights}, status, call.mentions)
        return made["nodes"], made["weights"]

    def cover_seeds(self, call: CoverCall) -> HitArrays:
        node, weight, ids, scores, counts = self._up(call, *call[:5])
        there = call._replace(node=node, weight=weight, ids=ids, scores=scores, counts=counts)
        hits, status = seeding.cover_seeds(self.runtime, there)
        return self._results(call, hits, status, call.mentions)

    def dense_topk(self, call: DenseCall) -> HitArrays:
        corpus, (queries,) = call.corpus, self._up(call, call.queries)
        if not call.is_checked:
            corpus.checked()
        hits, rescored, read = dense.dense_topk(self.runtime, call._replace(queries=queries))
        if read is None:
            found = self._results(call, hits.arrays(), hits.status, corpus)
        else:
            raise_fault(read.status)
            found = read.arrays()
        how: dict[str, Any] = {"storage": corpus.storage}
        if corpus.storage == "int8":
            how["resident"] = f"the original vectors, in {corpus.precision}; only the CPU uses 8-bit codes"
        name = f"dense_topk_{DENSE_SUFFIXES[corpus.precision]}"
        self._record(name, **how, queries=int(queries.shape[0]), rescored_rows=rescored)
        return found

    def similarity_weights(self, call: SimilarityCall) -> Array:
        (queries,) = self._up(call, call.queries)
        weights, status = similarity.similarity_weights(self.runtime, call._replace(queries=queries))
        found = self._results(call, {"weights": weights}, status, call.corpus)
        self._record("similarity_f32", queries=int(queries.shape[0]), passages=call.corpus.num_vectors)
        return found["weights"]

    def boost_weights(self, call: BoostCall) -> Array:
        weights, ids, scores, counts = self._up(call, *call[:4])
        there = call._replace(weights=weights, ids=ids, scores=scores, counts=counts)
        boosted, status = boost.boost_weights(self.runtime, there)
        return self._results(call, {"weights": boosted}, status)["weights"]

    def calibrate(self, call: CalibrateCall) -> Array:
        scores, counts = self._up(call, call.scores, call.counts)
        out = fusion.calibrate(self.runtime, call._replace(scores=scores, counts=counts))
        self._record("calibrate_f32", queries=int(scores.shape[0]), method=call.method)
        return self._results(call, {"scores": out})["scores"]

    def fuse(self, call: FuseCall) -> HitArrays:
        hits = fusion.fuse(self.runtime, call)
        self._record("fuse_f32", queries=int(call.lists[0][0].shape[0]), method=call.method, lists=len(call.lists))
        return self._results(call, hits)

    def ising(self, call: IsingCall) -> HitArrays:
        ids, scores, counts = self._up(call, *call.hits)
        best, status = ising.ising(self.runtime, call._replace(hits=(ids, scores, counts)))
        found = self._results(call, best, status, call.graph)
        self._record("ising_f32", queries=int(ids.shape[0]))
        return found

    def dice(self, call: DiceCall) -> NDArray[np.float32]:
        scores = dice.dice(self.runtime, call)
        self._record("dice_f32", queries=call.indptr.size - 1, candidates=call.candidates.shape[0])
        return self.runtime.download(scores)

    def project(self, call: ProjectCall) -> Array:
        (scores,) = self._up(call, call.scores)
        out, status = projection.project(self.runtime, call._replace(scores=scores))
        found = self._results(call, {"scores": out}, status, call.incidence)
        self._record("project_f32", queries=int(scores.shape[0]), rows=call.incidence.num_rows)
        return found["scores"]

    def project_topk(self, call: ProjectCall) -> HitArrays:
        (scores,) = self._up(call, call.scores)
        hits = projection.project_topk(self.runtime, call._replace(scores=scores))
        found = self._results(call, hits.arrays(), hits.status, call.incidence)
        self._record("project_f32", queries=int(scores.shape[0]), rows=call.incidence.num_rows)
        return found
