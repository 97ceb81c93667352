"""The CPU backend: prepares graphs and corpora once, makes output arrays, calls the native kernels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..types import Corpus, Graph, Incidence, LabelSets
from .arguments import DENSE_SUFFIXES, SUM_BEYOND, Evidence, IsingModel, PprQueries, thread_count
from .cpu_graph import graph_view, threads_used

_DENSE_TYPES = _native.dense_types()
_CALIBRATIONS, _TIES, _FUSION_METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()

_last: dict[str, dict[str, Any]] = {}


def _choose_isa() -> str | None:
    """Apply HOPFUSE_ISA; what is wrong with it, if anything."""
    wanted = os.environ.get("HOPFUSE_ISA", "")
    if not wanted or _native.use_isa(wanted):
        return None
    return (
        f"HOPFUSE_ISA is {wanted!r}, but this machine runs {', '.join(_native.runnable_isas())} "
        f"(built: {', '.join(_native.built_isas())}); unset it or choose one of those"
    )


unusable_reason: str | None = _choose_isa()

#: No arrays but the host's.
device = None


def explain() -> dict[str, Any]:
    """The part of :func:`hopfuse.explain` that concerns the CPU."""
    runnable, built = _native.runnable_isas(), _native.built_isas()
    chosen = _native.isa()
    forced = os.environ.get("HOPFUSE_ISA", "")
    reasons = {}
    for isa in built:
        if isa not in runnable:
            reasons[isa] = "this processor lacks its instructions"
        elif isa != chosen:
            reasons[isa] = f"HOPFUSE_ISA={forced}" if forced else f"{chosen} is faster here"
    return {
        "variant": chosen,
        "built": built,
        "runnable": runnable,
        "not_chosen": reasons,
        "threads": thread_count(None),
        "idle_workspace_bytes": _native.idle_workspace_bytes(),
        "last_calls": {op: dict(call) for op, call in _last.items()},
        "error": unusable_reason,
    }


def _record(op: str, threads: int, **more: Any) -> None:
    _last[op] = {"kernel": f"{op}_{_native.isa()}", "threads": threads, **more}


# ---- Personalized PageRank -----------------------------------------------------------------------------------


def _ppr_arguments(q: PprQueries) -> dict[str, Any]:
    return {
        "restart_indptr": q.indptr,
        "restart_node": q.node,
        "restart_value": q.value,
        "damping": q.damping,
        "eta": q.edge_type_weights,
        "per_type": q.per_type,
        "allowed": q.allowed,
        "tol": q.tol,
        "max_iter": q.max_iter,
        "threads": q.threads,
    }


def ppr(graph: Graph, queries: PprQueries, scores: NDArray[np.float32]) -> Evidence:
    """Write (B, N) scores; return the evidence."""
    evidence = Evidence.empty(queries.damping.size)
    if queries.damping.size:
        view = graph_view(graph, queries)
        _native.ppr(view, **_ppr_arguments(queries), scores=scores, **evidence._asdict())
    _record("ppr_f32", threads_used(graph, queries), queries=queries.damping.size)
    return evidence


def ppr_topk(
    graph: Graph, queries: PprQueries, k: int, among: NDArray[np.int32] | None, stop_when_proven: bool
) -> tuple[dict[str, Any], Evidence]:
    """ids, scores, counts, score_bounds and proven, with the evidence."""
    batch = queries.damping.size
    evidence = Evidence.empty(batch)
    hits: dict[str, Any] = {
        "ids": np.empty((batch, k), np.int64),
        "scores": np.empty((batch, k), np.float32),
        "counts": np.zeros(batch, np.int64),
        "score_bounds": np.empty((batch, k), np.float32),
        "proven": np.zeros(batch, np.uint8),
    }
    if batch:
        view = graph_view(graph, queries, regroups=stop_when_proven)
        _native.ppr_topk(
            view,
            **_ppr_arguments(queries),
            among=among,
            stop_when_proven=stop_when_proven,
            **hits,
            **evidence._asdict(),
        )
    _record("ppr_f32", threads_used(graph, queries), queries=batch, proven=int(hits["proven"].sum()))
    return hits, evidence


# ---- Dense top-k ---------------------------------------------------------------------------------------------


_CODED_ROWS = _native.DENSE_TILE * _native.DENSE_STEP


def _padded(corpus: Corpus, rows: int) -> tuple[int, int]:
    """Rows and columns of the codes of so many rows of a corpus."""
    width = -(-corpus.dim // _native.DENSE_GROUP) * _native.DENSE_GROUP
    return -(-rows // _CODED_ROWS) * _CODED_ROWS, width


def code_bytes(corpus: Corpus) -> int:
    """Bytes that a corpus's codes take, with the scales and norms that bound what they leave out."""
    rows, width = _padded(corpus, corpus.num_vectors)
    return rows * (width + 3 * 4) + 4 * corpus.num_vectors


def _corpus_codes(corpus: Corpus, threads: int) -> dict[str, Any]:
    """The 8-bit codes of a corpus (a quarter of float32's bytes), made part by part at its first search."""
    if "cpu" not in corpus._prepared:
        padded, width = _padded(corpus, corpus.num_vectors)
        codes: dict[str, Any] = {
            "codes": np.empty((padded, width), np.uint8),
            "scale": np.empty(padded, np.float32),
            "error": np.empty(padded, np.float32),
            "norm_code": np.empty(padded, np.float32),
            "norm": np.empty(corpus.num_vectors, np.float32),
        }
        vectors, how = _vector_bits(corpus), _how_stored(corpus)
        for rows in corpus.parts(_CODED_ROWS):
            end = rows.start + _padded(corpus, rows.stop - rows.start)[0]
            part = {name: array[rows.start : end] for name, array in codes.items()}
            _native.dense_encode(vectors[rows], **how, threads=threads, **part)
        corpus._prepared["cpu"] = codes
    prepared: dict[str, Any] = corpus._prepared["cpu"]
    return prepared


def _vector_bits(corpus: Corpus) -> NDArray[Any]:
    return corpus.vectors if corpus.precision == "float32" else corpus.vectors.view(np.uint16)


def _how_stored(corpus: Corpus) -> dict[str, Any]:
    return {"type": _DENSE_TYPES[corpus.precision], "cosine": corpus.metric == "cosine"}


def dense_topk(
    queries: NDArray[np.float32],
    corpus: Corpus,
    k: int,
    *,
    mask: NDArray[np.uint8] | None,
    indptr: NDArray[np.int64] | None,
    ids: NDArray[np.int64] | None,
    shared: bool,
    threads: int,
) -> dict[str, Any]:
    """ids, scores and counts of the k best rows for each query."""
    batch = queries.shape[0]
    hits: dict[str, Any] = {
        "ids": np.full((batch, k), -1, np.int64),
        "scores": np.full((batch, k), -np.inf, np.float32),
        "counts": np.zeros(batch, np.int64),
    }
    rescored = np.zeros(batch, np.int64)
    if batch and k and corpus.num_vectors:
        _native.dense_topk(
            _vector_bits(corpus),
            **_how_stored(corpus),
            queries=queries,
            k=k,
            allow_mask=mask,
            allow_indptr=indptr,
            allow_ids=ids,
            allow_shared=shared,
            threads=threads,
            rescored=rescored,
            **_corpus_codes(corpus, threads),
            **hits,
        )
        corpus.give_back()
    name = f"dense_topk_{DENSE_SUFFIXES[corpus.precision]}"
    _record(name, threads, storage=corpus.storage, queries=batch, rescored_rows=int(rescored.sum()))
    return hits


# ---- Calibration and fusion -------------------------------------------------------------------------------------


def calibrate(
    scores: NDArray[np.float32],
    counts: NDArray[np.int64],
    *,
    method: str,
    ties: str,
    option: NDArray[np.float32],
    threads: int,
) -> NDArray[np.float32]:
    """Calibrated scores, (B, k); ``option`` as kernels/include/hopfuse/calibrate.h has it, of one list."""
    out = np.empty_like(scores)
    kind = {"method": _CALIBRATIONS[method], "ties": _TIES[ties]}
    _native.calibrate(scores, counts, **kind, option=option, threads=threads, out=out)
    _record("calibrate_f32", threads, queries=scores.shape[0], method=method)
    return out


def fuse(
    lists: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]],
    *,
    method: str,
    calibration: str,
    ties: str,
    calibration_option: NDArray[np.float32],
    pools: NDArray[np.int64],
    option: NDArray[np.float32],
    weights: NDArray[np.float32],
    consensus: float,
    prior: NDArray[np.float32],
    k: int,
    threads: int,
) -> dict[str, Any]:
    """ids, scores and counts of the k best documents of each query's union."""
    batch = lists[0][0].shape[0]
    hits: dict[str, Any] = {
        "out_ids": np.empty((batch, k), np.int64),
        "out_scores": np.empty((batch, k), np.float32),
        "out_counts": np.zeros(batch, np.int64),
    }
    _native.fuse(
        [ids for ids, _, _ in lists],
        [scores for _, scores, _ in lists],
        [counts for _, _, counts in lists],
        method=_FUSION_METHODS[method],
        calibration=_CALIBRATIONS[calibration],
        ties=_TIES[ties],
        calibration_option=calibration_option,
        pools=pools,
        option=option,
        weights=weights,
        weights_shared=weights.ndim == 1,
        consensus=consensus,
        prior=prior,
        threads=threads,
        **hits,
    )
    _record("fuse_f32", threads, queries=batch, method=method, lists=len(lists))
    return {name.removeprefix("out_"): array for name, array in hits.items()}


# ---- Ising mean-field reranking ----------------------------------------------------------------------------------


def ising(
    graph: Graph,
    hits: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]],
    model: IsingModel,
    *,
    k: int,
    threads: int,
) -> dict[str, Any]:
    """ids, scores and counts of the k best candidates of each query, by their mean field."""
    ids, scores, counts = hits
    batch = ids.shape[0]
    best: dict[str, Any] = {
        "out_ids": np.empty((batch, k), np.int64),
        "out_scores": np.empty((batch, k), np.float32),
        "out_counts": np.zeros(batch, np.int64),
    }
    rows: dict[str, Any] = {name: getattr(graph, name) for name in ("indptr", "indices", "weight", "internal_of")}
    threads = max(1, min(threads, batch))
    _native.ising(**rows, ids=ids, scores=scores, counts=counts, **model._asdict(), threads=threads, **best)
    _record("ising_f32", threads, queries=batch, candidates=int(counts.sum()))
    return {name.removeprefix("out_"): array for name, array in best.items()}


# ---- Sørensen-Dice ---------------------------------------------------------------------------------------------------


def dice(
    labels: LabelSets,
    query_indptr: NDArray[np.int64],
    query_units: NDArray[np.int32],
    candidates: NDArray[np.int32],
    indptr: NDArray[np.int64],
    *,
    threads: int,
) -> NDArray[np.float32]:
    """Scores, (Z,)."""
    scores = np.empty(candidates.shape[0], np.float32)
    threads = max(1, min(threads, indptr.size - 1))  # a query is one thread's, and each has a byte for every unit
    _native.dice(
        label_indptr=labels.indptr,
        label_units=labels.members,
        units=len(labels.vocabulary),
        query_indptr=query_indptr,
        query_units=query_units,
        indptr=indptr,
        candidates=candidates,
        threads=threads,
        scores=scores,
    )
    _record("dice_f32", threads, queries=indptr.size - 1, candidates=candidates.shape[0])
    return scores


# ---- Projection ------------------------------------------------------------------------------------------------------


def project(
    incidence: Incidence, scores: NDArray[np.float32], scale: NDArray[np.float32] | None, *, threads: int
) -> NDArray[np.float32]:
    """Scores of the rows, (B, P)."""
    batch = scores.shape[0]
    out, status = np.empty((batch, incidence.num_rows), np.float32), np.ones(batch, np.int32)
    _native.project(**_projection(incidence, scores, scale, threads), status=status, out=out)
    _record("project_f32", threads, queries=batch, rows=incidence.num_rows)
    _refuse_beyond(status)
    return out


def project_topk(
    incidence: Incidence, scores: NDArray[np.float32], scale: NDArray[np.float32] | None, k: int, *, threads: int
) -> dict[str, Any]:
    """ids, scores and counts of the k best rows of each query."""
    batch = scores.shape[0]
    hits: dict[str, Any] = {
        "out_ids": np.empty((batch, k), np.int64),
        "out_scores": np.empty((batch, k), np.float32),
        "out_counts": np.zeros(batch, np.int64),
    }
    status = np.ones(batch, np.int32)
    if k:
        _native.project_topk(**_projection(incidence, scores, scale, threads), status=status, **hits)
    _record("project_f32", threads, queries=batch, rows=incidence.num_rows)
    _refuse_beyond(status)
    return {name.removeprefix("out_"): array for name, array in hits.items()}


def _projection(
    incidence: Incidence, scores: NDArray[np.float32], scale: NDArray[np.float32] | None, threads: int
) -> dict[str, Any]:
    rows = {"indptr": incidence.indptr, "indices": incidence.indices, "weight": incidence.weights, "scale": scale}
    return {**rows, "scores": scores, "threads": threads}


def _refuse_beyond(status: NDArray[np.int32]) -> None:
    wrong = np.flatnonzero(status < 0)
    if wrong.size:
        raise InputError(SUM_BEYOND.format(row=wrong[0]))
