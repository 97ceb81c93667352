"""The device backend: native operations, for arrays on the host or on the device, and the memory that they take."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..._arrays.vectors import dense_types
from ..._validation import check_whole
from ...errors import BackendError, InputError
from ...types import Corpus, Graph, Incidence, LabelSets
from ..calls import (
    DENSE_SUFFIXES,
    Array,
    BoostCall,
    CalibrateCall,
    CoverCall,
    DenseCall,
    DeviceSeeds,
    DiceCall,
    EntitySeedCall,
    Evidence,
    FuseCall,
    HitArrays,
    IsingCall,
    NodeRanking,
    PassageSeedCall,
    PprQueries,
    ProjectCall,
    RowFilter,
    SimilarityCall,
)
from ..driver import no_driver
from ..node_weights import NodeWeightCall, NodeWeights
from ..walks import prepared_graph
from .runtime import Runtime

_CALIBRATIONS, _TIES, _FUSION_METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()


class DeviceOps:
    """The ops of the CPU backend, with the same bits, on a device. ``threads`` of calls is ignored.

    Arrays of a call are uploaded and its results downloaded. If a call is ``on_device``, results are device arrays, and
    their work is only queued. A query that a kernel refuses raises InputError; in a recording, where nothing can be
    read back, its status (kernels/include/hopfuse/query_status.h) is one of the recording's results.
    """

    unusable: BackendError | None = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.last: dict[str, dict[str, Any]] = {}
        self._device = runtime.device

    @property
    def device(self) -> DeviceOps:
        """The backend itself, because it takes arrays on its device."""
        return self

    def holding(self, array: Any) -> DeviceOps:
        """Return the ops of the device that an array of a device is on."""
        return self

    def explain(self) -> dict[str, Any]:
        """Return the device's entry in :func:`hopfuse.backend_info`."""
        calls = {op: dict(call) for op, call in list(self.last.items())}
        return {**self.runtime.explain(), "last_calls": calls, "error": None}

    def adopt(self, array: Any, name: str) -> _native.DeviceArray:
        """Return a caller's array without a copy; raise if it is not on this device."""
        if not self.runtime.is_device_array(array):
            raise InputError(
                "conflict",
                name,
                "{field} is on the host, but other arrays are on a device; move all of them to one place",
            )
        return self.runtime.adopt(array)

    def _record(self, op: str, **more: Any) -> None:
        """Keep a description of the last call for ``backend_info()``."""
        self.last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    # ---- What is resident --------------------------------------------------------------------------------------------

    def _rows(self, graph: Graph) -> _native.DeviceRows:
        return self.runtime.resident(graph, lambda queue: _native.device_rows(queue, prepared_graph(graph)), ":rows")

    def _graph(self, graph: Graph, *, per_type: bool, counts_edges: bool) -> _native.DeviceGraph:
        """Return a graph with the degrees of a normalisation, and rows of outgoing edges if queries sum degrees."""
        with_out = counts_edges and graph.directed

        def make(queue: _native.DeviceQueue) -> _native.DeviceGraph:
            return _native.device_graph(queue, self._rows(graph), prepared_graph(graph), per_type, with_out)

        return self.runtime.resident(graph, make, f":{per_type}:{with_out}")

    def _walked(self, graph: Graph, queries: PprQueries) -> _native.DeviceGraph:
        counts_edges = queries.allow is not None or queries.node_weights is not None
        return self._graph(graph, per_type=queries.per_type, counts_edges=counts_edges)

    def _labels(self, labels: LabelSets) -> _native.DeviceLabels:
        return self.runtime.resident(labels, lambda queue: _native.device_labels(queue, labels.indptr, labels.members))

    def _corpus(self, corpus: Corpus) -> _native.DeviceCorpus:
        if corpus.num_vectors > _native.DEVICE_MOST_ROWS:
            raise InputError(
                "limit",
                "corpus",
                "{field} has {given:,} rows; a device searches up to {allowed:,}",
                given=corpus.num_vectors,
                allowed=_native.DEVICE_MOST_ROWS,
            )

        def make(queue: _native.DeviceQueue) -> _native.DeviceCorpus:
            given = corpus.vectors if corpus.precision == "float32" else corpus.vectors.view(np.uint16)
            kind, is_cosine = dense_types()[corpus.precision], corpus.metric == "cosine"
            return _native.device_corpus(queue, given, type=kind, cosine=is_cosine)

        return self.runtime.resident(corpus, make)

    def _incidence(self, incidence: Incidence) -> _native.DeviceIncidence:
        rows = {"indptr": incidence.indptr, "indices": incidence.indices, "weights": incidence.weights}
        return self.runtime.resident(incidence, lambda queue: _native.device_incidence(queue, **rows))

    # ---- Personalized PageRank ---------------------------------------------------------------------------------------

    def ppr(self, graph: Graph, queries: PprQueries, scores: Array) -> Evidence:
        there, on_device = self._walked(graph, queries), queries.on_device
        found = _native.device_ppr(self._device.queue(), there, queries, scores=scores, on_device=on_device)
        self._record("ppr_f32", queries=queries.damping.size)
        return Evidence(**found)

    def ppr_topk(self, graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]:
        hits = _native.device_ppr_topk(
            self._device.queue(),
            self._walked(graph, queries),
            queries,
            k=ranking.k,
            candidates=ranking.candidates,
            stop_when_proven=ranking.stop_when_proven,
            prove_order=ranking.prove_order,
            on_device=queries.on_device,
        )
        evidence = Evidence(*(hits.pop(name) for name in Evidence._fields))
        proven = {} if queries.on_device else {"proven": int(np.count_nonzero(hits["proven"]))}
        self._record("ppr_f32", queries=queries.damping.size, **proven)
        return hits, evidence

    def order_weights(self, call: NodeWeightCall) -> NodeWeights:
        """Scale node weights, on the device, to the range that walks read."""
        made = _native.device_order_weights(
            self._device.queue(),
            self._graph(call.graph, per_type=call.per_type, counts_edges=True),
            weight=call.weight,
            node=call.node,
            allow=call.allow,
            lightest=call.lightest,
        )
        return NodeWeights(made["weight"], call.node, made["other"], on_device=True)

    # ---- Dense search ------------------------------------------------------------------------------------------------

    def dense_topk(self, call: DenseCall) -> HitArrays:
        corpus = call.corpus
        if not call.is_checked:
            corpus.checked()
        found = _native.device_dense_topk(
            self._device.queue(),
            self._corpus(corpus),
            queries=call.queries,
            k=call.k,
            **call.allow._asdict(),
            on_device=call.on_device,
        )
        how: dict[str, Any] = {"storage": corpus.storage}
        if corpus.storage == "int8":
            how["resident"] = f"the original vectors, in {corpus.precision}; the CPU has their 8-bit codes alone"
        name, rescored = f"dense_topk_{DENSE_SUFFIXES[corpus.precision]}", found.pop("rescored_rows")
        self._record(name, **how, queries=call.queries.shape[0], rescored_rows=rescored)
        return found

    def similarity_weights(self, call: SimilarityCall) -> Array:
        found = _native.device_similarity_weights(
            self._device.queue(),
            self._corpus(call.corpus),
            queries=call.queries,
            **call.allow._asdict(),
            tau=call.tau,
            floor=call.floor,
            on_device=call.on_device,
        )
        self._record("similarity_f32", queries=call.queries.shape[0], passages=call.corpus.num_vectors)
        return found["weights"]

    # ---- Seeds -------------------------------------------------------------------------------------------------------

    def add_passage_seeds(self, call: PassageSeedCall) -> tuple[Array, Array]:
        made = _native.device_add_passage_seeds(self._device.queue(), **call._asdict())
        return made["nodes"], made["weights"]

    def add_entity_seeds(self, call: EntitySeedCall) -> tuple[Array, Array]:
        given = call._asdict()
        mentions, frequency = given.pop("mentions"), np.ascontiguousarray(given.pop("frequency"), np.int64)
        queue = self._device.queue()
        made = _native.device_add_entity_seeds(queue, self._incidence(mentions), frequency=frequency, **given)
        return made["nodes"], made["weights"]

    def cover_seeds(self, call: CoverCall) -> HitArrays:
        given = call._asdict()
        mentions = self._incidence(given.pop("mentions"))
        return _native.device_cover_seeds(self._device.queue(), mentions, **given)

    def boost_weights(self, call: BoostCall) -> Array:
        return _native.device_boost_weights(self._device.queue(), **call._asdict())["weights"]

    # ---- Calibration and fusion --------------------------------------------------------------------------------------

    def calibrate(self, call: CalibrateCall) -> Array:
        made = _native.device_calibrate(
            self._device.queue(),
            call.scores,
            call.counts,
            method=_CALIBRATIONS[call.method],
            ties=_TIES[call.ties],
            option=call.option,
            on_device=call.on_device,
        )
        self._record("calibrate_f32", queries=call.scores.shape[0], method=call.method)
        return made["scores"]

    def fuse(self, call: FuseCall) -> HitArrays:
        hits = _native.device_fuse(
            self._device.queue(),
            call.lists,
            pools=call.pools,
            method=_FUSION_METHODS[call.method],
            calibration=_CALIBRATIONS[call.calibration],
            ties=_TIES[call.ties],
            calibration_option=call.calibration_option,
            option=call.option,
            weights=call.weights,
            consensus=call.consensus,
            prior=call.prior,
            k=call.k,
            on_device=call.on_device,
        )
        self._record("fuse_f32", queries=call.lists[0][0].shape[0], method=call.method, lists=len(call.lists))
        return hits

    def ising(self, call: IsingCall) -> HitArrays:
        ids, scores, counts = call.hits
        best = _native.device_ising(
            self._device.queue(),
            self._rows(call.graph),
            ids=ids,
            scores=scores,
            counts=counts,
            **call.model._asdict(),
            k=call.k,
            on_device=call.on_device,
        )
        self._record("ising_f32", queries=ids.shape[0])
        return best

    # ---- Labels and projection -----------------------------------------------------------------------------------

    def dice(self, call: DiceCall) -> NDArray[np.float32]:
        scores = _native.device_dice(
            self._device.queue(),
            self._labels(call.labels),
            query_indptr=call.query_indptr,
            query_units=call.query_units,
            indptr=call.indptr,
            candidates=call.candidates,
        )
        self._record("dice_f32", queries=call.indptr.size - 1, candidates=call.candidates.shape[0])
        return scores

    def project(self, call: ProjectCall) -> Array:
        given = {"scores": call.scores, "scale": call.scale, "on_device": call.on_device}
        found = _native.device_project(self._device.queue(), self._incidence(call.incidence), **given)
        self._record("project_f32", queries=call.scores.shape[0], rows=call.incidence.num_rows)
        return found["scores"]

    def project_topk(self, call: ProjectCall) -> HitArrays:
        given = {"scores": call.scores, "scale": call.scale, "k": call.k, "on_device": call.on_device}
        found = _native.device_project_topk(self._device.queue(), self._incidence(call.incidence), **given)
        self._record("project_f32", queries=call.scores.shape[0], rows=call.incidence.num_rows)
        return found


# ---- Memory ----------------------------------------------------------------------------------------------------------


def estimate(
    graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int, proves: bool, device: int | None
) -> dict[str, int]:
    """Return the resident bytes of ``graph`` and ``corpus``, and by its name the most that a call takes besides.

    The calls run on a device that only counts allocations, like the one with the number ``device``: by default the one
    that a call of this thread would use or, without a driver, one on which calls take the most.
    """
    ops = DeviceOps(Runtime(_native.Device.counting(_counted_like(device)), "dry"))
    counted = ops.runtime.device
    sizes = dict.fromkeys(("graph", "corpus", "ppr", "ppr_topk", "dense_topk"), 0)
    calls: list[tuple[str, Graph | Corpus, dict[str, Callable[[], Any]]]] = []
    if graph is not None:
        walks = {
            "ppr": lambda: _scores(ops, graph, batch, seeds),
            "ppr_topk": lambda: _walk(ops, graph, batch, k, seeds, proves),
        }
        calls.append(("graph", graph, walks))
    if corpus is not None:
        calls.append(("corpus", corpus, {"dense_topk": lambda: _search(ops, corpus, batch, k)}))
    for name, held, made in calls:
        before = counted.used_bytes()
        try:
            for op, call in made.items():
                counted.reset_peak()
                call()
                sizes[name] = counted.used_bytes() - before
                sizes[op] = counted.peak_bytes() - counted.used_bytes()
        finally:
            ops.runtime.release(held)
    return sizes


def _counted_like(device: int | None) -> int | None:
    missing = no_driver()
    if missing is None:
        chosen = _native.current_device() or 0
        return chosen if device is None else check_whole(device, "device", _native.count_devices() - 1, least=0)
    if device is not None:
        raise missing
    return None


def _queries(device: DeviceOps, batch: int, seeds: int) -> PprQueries:
    empty = device.runtime.empty
    rows = DeviceSeeds(empty((batch, seeds), np.int64), empty((batch, seeds), np.float64), True)
    none = np.zeros(batch + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return PprQueries(*none, np.full(batch, 0.5), seeds=rows)


def _scores(device: DeviceOps, graph: Graph, batch: int, seeds: int) -> None:
    with TemporaryFile() as file:  # counting writes no scores, so the file takes no space
        scores = np.asarray(np.memmap(file, np.float32, "w+", shape=(batch, graph.num_nodes)))
        device.ppr(graph, _queries(device, batch, seeds), scores)


def _walk(device: DeviceOps, graph: Graph, batch: int, k: int, seeds: int, proves: bool) -> None:
    device.ppr_topk(graph, _queries(device, batch, seeds), NodeRanking(k, None, stop_when_proven=proves))


def _search(device: DeviceOps, corpus: Corpus, batch: int, k: int) -> None:
    queries = device.runtime.empty((batch, corpus.dim), np.float32)
    device.dense_topk(DenseCall(queries, corpus, k, RowFilter(), threads=1, on_device=True))
