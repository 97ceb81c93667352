"""Exact dense top-k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_bytes, check_k, check_number, wrong_type
from ..backends.call import HitArrays
from ..backends.calls.dense import DenseCall
from ..backends.engine import Engine, engine_for
from ..backends.faults import check_scorable
from ..types import Corpus, Hits
from ..types.hits import PAD_ID, PAD_SCORE, pad_rows
from ._arguments import read_filter

#: The rows that :func:`dense_above` searches for first.
FIRST_K = 64
#: The largest lists that :func:`dense_above` allocates, in bytes.
HITS_BUDGET = 1 << 32


def dense_topk(
    queries: Any,
    corpus: Any,
    k: int,
    *,
    allow: Any = None,
    min_score: float | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Hits:
    """Return the exact k best rows of a corpus for each query vector.

    Scores are float32 dot products (or cosines) in a canonical order of operations, the same bits on every kernel
    variant. A row is skipped only if a proven bound rules it out. Order: higher score, then lower id. Scores are not
    clipped: rounding can make the cosine of a vector with itself 1.0000001.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
        Finite vectors, read as float32. On a GPU (CuPy, torch, DLPack): float32 (B, d), read in place.
    corpus : Corpus, or array_like of float (N, d)
        A raw array is searched by inner product in float32, and every call reads all of it; for more than one call,
        build a Corpus once.
    k : int
        At least 0; results have min(k, N) columns.
    allow : array_like of bool (N,) or (B, N), of int (M,) or (B, M), or B id lists, optional
        Rows that may be hits, for all queries or per query; -1 in ids per query is padding, so that the ids of Hits are
        a filter.
    min_score : float, optional
        Hits of lower scores are left out; it is rounded to float32, as scores are. Only for queries on the host.
        :func:`dense_above` returns all rows from a score on.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the processors available to the process.

    Returns
    -------
    Hits
        ids int64 and scores float32, (B, min(k, N)), and counts (B,), the number of valid hits: less than the width if
        fewer rows are allowed or reach ``min_score``. Arrays are of the library that ``queries`` came from.

    Raises
    ------
    InputError
        NaN or infinite queries, a zero query with cosine (the message names the row), dimensions that differ.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> c = hf.Corpus.from_array(np.eye(4, dtype=np.float32))
    >>> hf.dense_topk([[0.0, 3.0, 0.0, 1.0]], c, 2).row(0)
    [(1, 3.0), (3, 1.0)]
    """
    k = check_k(k)
    least = _least(min_score)
    is_checked = isinstance(corpus, Corpus)
    if not is_checked:
        corpus = Corpus.unchecked(corpus)
    n, k = corpus.num_vectors, min(k, corpus.num_vectors)
    with engine_for(backend, queries, "queries") as engine:
        if least is not None:
            engine.needs_host("min_score", "queries")
        vectors = read_queries(engine, queries, corpus.dim, corpus.metric == "cosine")
        allowed = read_filter(allow, vectors.shape[0], n, "allow")
        call = DenseCall(vectors, corpus, k, allowed, engine.threads(threads), engine.on_device, is_checked)
        hits = engine.ops.run(call)
        if least is not None:
            _cut(hits, least)
        return engine.give_hits(hits)


def dense_above(
    queries: Any,
    corpus: Any,
    min_score: float,
    *,
    allow: Any = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Hits:
    """Return every row of a corpus whose score for a query is at least ``min_score``, best first.

    Runs :func:`dense_topk` for 64 rows, and with twice as many again for queries whose list is still full.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
        On the host.
    corpus : Corpus, or array_like of float (N, d)
        A raw array is made a Corpus of inner products.
    min_score : float
        Rounded to float32, as scores are.
    allow, backend, threads
        As for :func:`dense_topk`.

    Returns
    -------
    Hits
        As wide as the longest list.

    Raises
    ------
    InputError
        Those of :func:`dense_topk`, or lists of more than 4 GiB.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> c = hf.Corpus.from_array(np.eye(4, dtype=np.float32))
    >>> hf.dense_above([[0.0, 3.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.0]], c, 1.0).counts
    array([2, 0])
    """
    least = _least(min_score)
    if least is None:
        raise wrong_type(min_score, "min_score", "a number")
    engine = engine_for(backend, queries, "queries")
    engine.needs_host("min_score", "queries")
    corpus = corpus if isinstance(corpus, Corpus) else Corpus.from_array(corpus)
    vectors = read_queries(engine, queries, corpus.dim, corpus.metric == "cosine")
    allowed = read_filter(allow, vectors.shape[0], corpus.num_vectors, "allow")
    rows = np.arange(len(vectors))
    found: list[tuple[Any, Any]] = [((), ())] * len(vectors)
    k = min(FIRST_K, corpus.num_vectors)
    while rows.size:
        _check_budget(rows.size, k)
        call = DenseCall(vectors[rows], corpus, k, allowed.of(rows), engine.threads(threads))
        hits = engine.ops.run(call)
        _cut(hits, least)
        is_whole = (hits["counts"] < k) | (k == corpus.num_vectors)
        for at in np.flatnonzero(is_whole).tolist():
            count = int(hits["counts"][at])
            found[rows[at]] = hits["ids"][at, :count].copy(), hits["scores"][at, :count].copy()
        rows, k = rows[~is_whole], min(2 * k, corpus.num_vectors)
    width = max((len(ids) for ids, _ in found), default=0)
    _check_budget(len(found), width)
    return pad_rows(found, width)


def _least(min_score: float | None) -> np.float32 | None:
    return None if min_score is None else np.float32(check_number(min_score, "min_score", float32=True))


def _cut(hits: HitArrays, least: np.float32) -> None:
    """Leave out the hits below a score, in place."""
    ids, scores, counts = hits["ids"], hits["scores"], hits["counts"]
    counts[:] = np.minimum(counts, (scores >= least).sum(axis=1))
    beyond = np.arange(ids.shape[1]) >= counts[:, None]
    ids[beyond], scores[beyond] = PAD_ID, PAD_SCORE


def _check_budget(queries: int, k: int) -> None:
    size = queries * k * (np.dtype(np.int64).itemsize + np.dtype(np.float32).itemsize)
    fix = "search fewer queries at a time, or raise min_score"
    check_bytes(size, f"lists of {queries} queries x {k} rows", HITS_BUDGET, fix)


# ---- Query vectors, checked once even if several operations use them -------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class CheckedQueries:
    """Query vectors on the host that :func:`check_queries` has checked; operations do not check them again."""

    vectors: NDArray[np.float32]
    has_length: bool


def check_queries(queries: Any, dim: int, *, needs_length: bool, backend: str = "auto") -> Any:
    """Return queries to pass to several operations: converted and checked on the host, unchanged on a device.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
    dim : int
        d of the corpus.
    needs_length : bool
        Refuse a zero vector, as an operation over cosines does.
    backend : str
        The backend of the operations.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.ops.dense import check_queries
    >>> checked = check_queries([[3.0, 4.0]], 2, needs_length=True)
    >>> hf.dense_topk(checked, hf.Corpus.from_array([[1.0, 0.0]]), 1).scores
    array([[3.]], dtype=float32)
    """
    engine = engine_for(backend, queries, "queries")
    if engine.on_device:
        return queries
    return CheckedQueries(read_queries(engine, queries, dim, needs_length), needs_length)


def read_queries(engine: Engine, queries: Any, dim: int, needs_length: bool) -> Any:
    """Return queries as float32 (B, d) where the engine runs; ``needs_length`` refuses zero vectors."""
    if isinstance(queries, CheckedQueries):
        if queries.vectors.shape[1] == dim and (queries.has_length or not needs_length):
            return queries.vectors
        queries = queries.vectors
    vectors = engine.rows(queries, "queries", dim, "one vector per query, as long as the corpus's")
    engine.check(check_scorable, vectors, needs_length)
    return vectors
