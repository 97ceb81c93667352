"""The CPU backend: prepares graphs and corpora, allocates outputs and calls the native kernels."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .._arrays.vectors import dense_types
from .._threads import thread_count
from ..errors import BackendError
from ..types import LocalWalks
from ..types.continued_corpus import ContinuedCorpus
from . import cpu_continued, cpu_push
from .calls import (
    DENSE_SUFFIXES,
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
    PassageSeedCall,
    PprQueries,
    ProjectCall,
    SimilarityCall,
    empty_ppr_hits,
)
from .faults import raise_fault
from .node_weights import order_weights as order_weights
from .walks import prepared_graph

if TYPE_CHECKING:
    from ..types import Corpus, Graph, Incidence

_CALIBRATIONS, _TIES, _FUSION_METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()

#: The instruction set, the threads and other facts of the last call of each op.
_last: dict[str, tuple[str, int, dict[str, Any]]] = {}


def _choose_isa() -> BackendError | None:
    """Apply HOPFUSE_ISA; return an error if it is invalid."""
    wanted = os.environ.get("HOPFUSE_ISA", "")
    if not wanted or _native.use_isa(wanted):
        return None
    return BackendError(
        "unavailable",
        None,
        "HOPFUSE_ISA is {given!r}, but this machine runs {allowed} (built: {built}); unset it or choose one of those",
        given=wanted,
        allowed=", ".join(_native.runnable_isas()),
        built=", ".join(_native.built_isas()),
    )


def _warn_of_refused() -> None:
    """Warn of variants that the processor supports but that give wrong results on it; the next best is used."""
    for isa in _native.refused_isas():
        warnings.warn(
            f"the processor supports {isa!r}, but its dot products of codes are wrong here. hopfuse uses "
            f"{_native.isa()!r} instead; see hopfuse.backend_info()",
            RuntimeWarning,
            stacklevel=2,
        )


unusable: BackendError | None = _choose_isa()
_warn_of_refused()

#: The CPU takes only arrays on the host.
device = None


def explain() -> dict[str, Any]:
    """Return the CPU's entry in :func:`hopfuse.backend_info`."""
    runnable, built, refused = _native.runnable_isas(), _native.built_isas(), _native.refused_isas()
    chosen = _native.isa()
    forced = os.environ.get("HOPFUSE_ISA", "")
    reasons = {}
    for isa in built:
        if isa in refused:
            reasons[isa] = "its dot products of codes are wrong on this processor"
        elif isa not in runnable:
            reasons[isa] = "the processor or the operating system does not support its instructions"
        elif isa != chosen:
            reasons[isa] = f"HOPFUSE_ISA={forced}" if forced else f"{chosen} is faster here"
    return {
        "variant": chosen,
        "built": built,
        "runnable": runnable,
        "not_chosen": reasons,
        "threads": thread_count(None),
        "idle_workspace_bytes": _native.idle_workspace_bytes(),
        "last_calls": {op: _described(op, *call) for op, call in _last.items()},
        "error": None if unusable is None else str(unusable),
    }


def _record(op: str, threads: int, **more: Any) -> None:
    """Keep what :func:`explain` says of the last call."""
    _last[op] = _native.isa_of(op), threads, more


def _described(op: str, isa: str, threads: int, more: dict[str, Any]) -> dict[str, Any]:
    """Describe a call; counts per query are summed."""
    summed = {name: int(value.sum()) if isinstance(value, np.ndarray) else value for name, value in more.items()}
    return {"kernel": f"{op}_{isa}", "threads": threads, **summed}


# ---- Personalized PageRank -----------------------------------------------------------------------------------


def _ppr_arguments(q: PprQueries) -> dict[str, Any]:
    weights = q.node_weights
    return {
        "restart_indptr": q.indptr,
        "restart_node": q.node,
        "restart_value": q.value,
        "damping": q.damping,
        "eta": q.edge_type_weights,
        "per_type": q.per_type,
        "allow": q.allow,
        "node_weight": None if weights is None else weights.weight,
        "weighted_node": None if weights is None else weights.node,
        "other_weight": None if weights is None else weights.other,
        "tol": q.tol,
        "max_iter": q.max_iter,
        "threads": q.threads,
    }


def ppr(graph: Graph, queries: PprQueries, scores: NDArray[np.float32]) -> Evidence:
    """Write (B, N) scores; return the evidence."""
    batch = queries.damping.size
    evidence, course = Evidence.uninitialised(batch), (1, 0)
    if batch:
        given = _ppr_arguments(queries)
        course = _native.ppr(prepared_graph(graph), **given, scores=scores, **evidence._asdict())
    _record("ppr_f32", course[0], queries=batch, lanes=course[1])
    return evidence


def ppr_topk(graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]:
    """Return ids, scores, counts, score_bounds and proven, and walks if queries walked locally, with the evidence."""
    if ranking.walk != "passes":
        plan = cpu_push.plan(graph, queries, ranking)
        if plan is not None:
            return _after_pushes(graph, queries, ranking, plan)
    return _by_passes(graph, queries, ranking)


def _after_pushes(
    graph: Graph, queries: PprQueries, ranking: NodeRanking, plan: cpu_push.Plan
) -> tuple[HitArrays, Evidence]:
    """Walk locally; with ``auto``, queries that this does not prove walk by passes."""
    if not plan.budget.any():
        hits, evidence = _by_passes(graph, queries, ranking)
        return {**hits, "walks": LocalWalks.none(plan.budget.size)}, evidence
    hits, evidence, walks = cpu_push.push(graph, queries, ranking, plan, gives_up=ranking.walk == "auto")
    local = walks.local if ranking.walk == "auto" else plan.budget > 0
    left = np.flatnonzero(~local)
    _record("ppr_push_f64", queries.threads, queries=local.size, entries=walks.entries, local=local.size - left.size)
    walks = walks._replace(local=local)
    if left.size == 0:
        return {**hits, "walks": walks}, evidence
    others, others_evidence = _by_passes(graph, queries.take(left), ranking)
    if left.size == local.size:
        return {**others, "walks": walks}, others_evidence
    for name, array in others.items():
        hits[name][left] = array
    for to, array in zip(evidence, others_evidence, strict=True):
        to[left] = array
    return {**hits, "walks": walks}, evidence


def _by_passes(graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]:
    batch = queries.damping.size
    evidence, hits = Evidence.uninitialised(batch), empty_ppr_hits(batch, ranking.k)
    course = (1, 0)
    if batch:
        course = _native.ppr_topk(
            prepared_graph(graph),
            **_ppr_arguments(queries),
            candidates=ranking.candidates,
            stop_when_proven=ranking.stop_when_proven,
            prove_order=ranking.prove_order,
            **hits,
            **evidence._asdict(),
        )
    proven = int(np.count_nonzero(hits["proven"]))
    _record("ppr_f32", course[0], queries=batch, lanes=course[1], proven=proven)
    return hits, evidence


# ---- Dense top-k ---------------------------------------------------------------------------------------------


_NO_CODES: dict[str, Any] = dict.fromkeys(("codes", "scale", "error", "norm_code", "norm"))


def _vector_bits(corpus: Corpus) -> NDArray[Any]:
    return corpus.vectors if corpus.precision == "float32" else corpus.vectors.view(np.uint16)


def dense_topk(call: DenseCall, rescored: NDArray[np.int64] | None = None) -> HitArrays:
    """Return ids, scores and counts of the k best rows for each query; set the numbers of rescored rows, if given."""
    corpus, batch = call.corpus, call.queries.shape[0]
    rescored, is_sound = np.zeros(batch, np.int64) if rescored is None else rescored, False
    if isinstance(corpus, ContinuedCorpus) and corpus.segments:
        hits, is_sound = cpu_continued.topk(call, corpus, dense_topk, rescored), True
    else:
        hits = {
            "ids": np.empty((batch, call.k), np.int64),
            "scores": np.empty((batch, call.k), np.float32),
            "counts": np.zeros(batch, np.int64),
        }
        if batch and call.k:
            mask, indptr, ids, shared = call.allow
            is_sound = _native.dense_topk(
                _vector_bits(corpus),
                type=dense_types()[corpus.precision],
                cosine=corpus.metric == "cosine",
                queries=call.queries,
                k=call.k,
                allow_mask=mask,
                allow_indptr=indptr,
                allow_ids=ids,
                allow_shared=shared,
                threads=call.threads,
                rescored=rescored,
                **(corpus.codes(call.threads) if call.is_checked else _NO_CODES),
                **hits,
            )
            corpus.release()
    is_filtered = call.allow.mask is not None or call.allow.indptr is not None
    if not call.is_checked and (is_filtered or not is_sound):  # without a filter, the kernel has read every row
        corpus.checked()
        if not is_sound:
            return dense_topk(call._replace(is_checked=True), rescored)
    name = f"dense_topk_{DENSE_SUFFIXES[corpus.precision]}"
    _record(name, call.threads, storage=corpus.storage, queries=batch, rescored_rows=rescored)
    return hits


def similarity_weights(call: SimilarityCall) -> NDArray[np.float32]:
    """Return weights of all vectors of the corpus, (B, N)."""
    corpus, batch = call.corpus, call.queries.shape[0]
    if isinstance(corpus, ContinuedCorpus):
        return cpu_continued.similarity(call, corpus, similarity_weights)
    out = np.empty((batch, corpus.num_vectors), np.float32)
    is_filtered = call.allow.mask is not None or call.allow.indptr is not None
    _native.similarity(
        _vector_bits(corpus),
        type=dense_types()[corpus.precision],
        queries=call.queries,
        allow_mask=call.allow.masks(corpus.num_vectors).view(np.uint8) if is_filtered else None,
        allow_shared=call.allow.shared,
        tau=call.tau,
        floor=call.floor,
        threads=call.threads,
        out=out,
    )
    corpus.release()
    _record("similarity_f32", call.threads, queries=batch, passages=corpus.num_vectors)
    return out


# ---- Calibration, fusion and reranking of lists ------------------------------------------------------------------


def _empty_hits(batch: int, k: int) -> HitArrays:
    """Allocate hits, under the names of the bindings' arguments."""
    return {
        "out_ids": np.empty((batch, k), np.int64),
        "out_scores": np.empty((batch, k), np.float32),
        "out_counts": np.zeros(batch, np.int64),
    }


def _named(hits: HitArrays) -> HitArrays:
    return {"ids": hits["out_ids"], "scores": hits["out_scores"], "counts": hits["out_counts"]}


def calibrate(call: CalibrateCall) -> NDArray[np.float32]:
    """Return calibrated scores, (B, k)."""
    out = np.empty(call.scores.shape, np.float32)
    kind = {"method": _CALIBRATIONS[call.method], "ties": _TIES[call.ties]}
    _native.calibrate(call.scores, call.counts, **kind, option=call.option, threads=call.threads, out=out)
    _record("calibrate_f32", call.threads, queries=call.scores.shape[0], method=call.method)
    return out


def fuse(call: FuseCall) -> HitArrays:
    """Return ids, scores and counts of the k best fused documents of each query."""
    ids, scores, counts = map(list, zip(*call.lists, strict=True))
    batch = ids[0].shape[0]
    hits = _empty_hits(batch, call.k)
    _native.fuse(
        ids,
        scores,
        counts,
        method=_FUSION_METHODS[call.method],
        calibration=_CALIBRATIONS[call.calibration],
        ties=_TIES[call.ties],
        calibration_option=call.calibration_option,
        pools=call.pools,
        option=call.option,
        weights=call.weights,
        weights_shared=call.weights.ndim == 1,
        consensus=call.consensus,
        prior=call.prior,
        threads=call.threads,
        **hits,
    )
    _record("fuse_f32", call.threads, queries=batch, method=call.method, lists=len(ids))
    return _named(hits)


def ising(call: IsingCall) -> HitArrays:
    """Return ids, scores and counts of the k best reranked candidates of each query."""
    graph, (ids, scores, counts) = call.graph, call.hits
    batch = ids.shape[0]
    hits = _empty_hits(batch, call.k)
    rows: dict[str, Any] = {name: getattr(graph, name) for name in ("indptr", "indices", "weight", "internal_of")}
    threads = max(1, min(call.threads, batch))
    _native.ising(**rows, ids=ids, scores=scores, counts=counts, **call.model._asdict(), threads=threads, **hits)
    _record("ising_f32", threads, queries=batch, candidates=int(counts.sum()))
    return _named(hits)


# ---- Seeds, and weights of hits: the same bits as the kernels of a device --------------------------------------------


def add_passage_seeds(call: PassageSeedCall) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and weights, (B, S + k)."""
    made = _empty_seeds(call.node, call.ids.shape[1])
    given = call._asdict()
    del given["on_device"]
    _native.add_passage_seeds(**given, **made)
    return made["out_node"], made["out_weight"]


def add_entity_seeds(call: EntitySeedCall) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and weights, (B, S + W).

    W is the largest number of entries in the rows of a query's hits. Each entry has a column, ordered by rank and then
    by node. A node that is a seed or has an earlier column adds to that one and leaves its own empty. All sums are
    float64, in column order.
    """
    hits, rows = {"ids": call.ids, "counts": call.counts}, call.mentions
    made = _empty_seeds(call.node, _native.most_entries(**hits, indptr=rows.indptr))
    often = np.ascontiguousarray(np.atleast_2d(call.frequency), np.int64)
    given = {"node": call.node, "weight": call.weight, **hits, **_mentions(rows)}
    _native.add_entity_seeds(**given, frequency=often, mass=call.mass, **made)
    return made["out_node"], made["out_weight"]


def cover_seeds(call: CoverCall) -> HitArrays:
    """Return ids, scores and counts, (B, k)."""
    chosen = _empty_hits(len(call.node), call.k)
    given = {"node": call.node, "weight": call.weight, "ids": call.ids, "scores": call.scores, "counts": call.counts}
    _native.cover_seeds(**given, **_mentions(call.mentions), least=call.least, **chosen)
    return _named(chosen)


def boost_weights(call: BoostCall) -> NDArray[np.float32]:
    """Return boosted weights, (B, N)."""
    boosted = np.array(call.weights, np.float32, order="C")
    given = {"ids": call.ids, "scores": call.scores, "counts": call.counts}
    _native.boost_weights(weights=boosted, **given, strength=call.strength)
    return boosted


def _mentions(rows: Incidence) -> dict[str, Any]:
    return {"indptr": rows.indptr, "indices": rows.indices, "weights": rows.weights}


def _empty_seeds(node: NDArray[np.int64], more: int) -> dict[str, Any]:
    """Allocate seeds with more columns, under the names of the bindings' arguments."""
    shape = len(node), node.shape[1] + more
    return {"out_node": np.empty(shape, np.int64), "out_weight": np.empty(shape)}


# ---- Labels and projection ---------------------------------------------------------------------------------------


def dice(call: DiceCall) -> NDArray[np.float32]:
    """Return scores, (Z,)."""
    labels, batch = call.labels, call.indptr.size - 1
    scores = np.empty(call.candidates.shape[0], np.float32)
    threads = max(1, min(call.threads, batch))  # one thread per query; each allocates a byte per unit
    _native.dice(
        label_indptr=labels.indptr,
        label_units=labels.members,
        units=len(labels.vocabulary),
        query_indptr=call.query_indptr,
        query_units=call.query_units,
        indptr=call.indptr,
        candidates=call.candidates,
        threads=threads,
        scores=scores,
    )
    _record("dice_f32", threads, queries=batch, candidates=scores.size)
    return scores


def project(call: ProjectCall) -> NDArray[np.float32]:
    """Return scores of the rows, (B, P)."""
    batch = call.scores.shape[0]
    out, status = np.empty((batch, call.incidence.num_rows), np.float32), np.ones(batch, np.int32)
    _native.project(**_projection(call), status=status, out=out)
    _finish_projection(call, status)
    return out


def project_topk(call: ProjectCall) -> HitArrays:
    """Return ids, scores and counts of the k best rows of each query."""
    batch = call.scores.shape[0]
    hits, status = _empty_hits(batch, call.k), np.ones(batch, np.int32)
    if call.k:
        _native.project_topk(**_projection(call), status=status, **hits)
    _finish_projection(call, status)
    return _named(hits)


def _projection(call: ProjectCall) -> dict[str, Any]:
    rows = {"indptr": call.incidence.indptr, "indices": call.incidence.indices, "weight": call.incidence.weights}
    return {**rows, "scale": call.scale, "scores": call.scores, "threads": call.threads}


def _finish_projection(call: ProjectCall, status: NDArray[np.int32]) -> None:
    _record("project_f32", call.threads, queries=status.size, rows=call.incidence.num_rows)
    raise_fault(status)
