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
    """Return the k best rows of a corpus for each query vector, exactly.

    Scores are canonical float32 dot products (or cosines), the same bits on every kernel variant; rows are
    ruled out early only by a proven bound. Order: higher score, then lower id.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
        Finite vectors, read as float32. On a GPU (CuPy, torch, DLPack): float32 (B, d), read in place.
    corpus : Corpus, or array_like of float (N, d)
        A raw array is searched by inner product, as ``Corpus.from_array`` has it in float32. A call reads it all
        and keeps nothing; build a Corpus once for more than one call.
    k : int
        At least 0; results are min(k, N) wide.
    allow : array_like of bool (N,) or (B, N), of int ids, or a sequence of B id lists, optional
        Rows that may be hits, for all queries or for each.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        Of the CPU. Default: HOPFUSE_NUM_THREADS, else all processors of the process.

    Returns
    -------
    Hits
        ids int64 and scores float32 (B, min(k, N)), counts (B,): how many are valid, fewer than the width where
        ``allow`` leaves fewer rows. Arrays of the library that ``queries`` came from.

    Raises
    ------
    InputError
        NaN or infinite queries, a zero query under cosine (the row is named), dimensions that differ.

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
