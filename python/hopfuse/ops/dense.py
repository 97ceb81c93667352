"""Exact dense top-k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arrays.convert import same_library
from .._threads import thread_count
from .._validation import check_k
from ..backends import resolve
from ..backends.calls import DenseCall
from ..backends.placement import device_for
from ..types import Corpus, Hits
from ._filter import read_filter
from .vectors import device_queries, read_queries

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


def dense_topk(
    queries: Any,
    corpus: Any,
    k: int,
    *,
    allow: Any = None,
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
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the processors available to the process.

    Returns
    -------
    Hits
        ids int64 and scores float32, (B, min(k, N)), and counts (B,), the number of valid hits: less than the width if
        ``allow`` selects fewer rows. Arrays are of the library that ``queries`` came from.

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
    is_checked = isinstance(corpus, Corpus)
    if not is_checked:
        corpus = Corpus.unchecked(corpus)
    k = min(k, corpus.num_vectors)
    device = device_for(backend, queries, "queries")
    if device is not None:
        return _on_device(device, queries, corpus if is_checked else corpus.checked(), k, allow)
    engine = resolve(backend)
    vectors = read_queries(queries, corpus.dim, needs_length=corpus.metric == "cosine")
    allowed = read_filter(allow, vectors.shape[0], corpus.num_vectors, "allow")
    hits = engine.dense_topk(DenseCall(vectors, corpus, k, allowed, thread_count(threads), is_checked=is_checked))
    wrap = same_library(queries)
    return Hits.unchecked(**{name: wrap(array) for name, array in hits.items()})


def _on_device(device: DeviceOps, queries: Any, corpus: Corpus, k: int, allow: Any) -> Hits:
    runtime = device.runtime
    with runtime.on_stream_of(queries):
        vectors = device_queries(device, queries, corpus.dim)
        allowed = read_filter(allow, int(vectors.shape[0]), corpus.num_vectors, "allow")
        hits = device.dense_topk(DenseCall(vectors, corpus, k, allowed, threads=1, on_device=True))
        return Hits.unchecked(**{name: runtime.export(array, queries) for name, array in hits.items()})
