"""Exact dense top-k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backends import resolve
from ..backends.arguments import thread_count
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Corpus, Hits
from ..types.arrays import to_numpy
from ..types.bfloat16 import bfloat16_bits, bfloat16_to_float32
from ._arrays import same_library
from ._captured import refuse_per_query
from ._checks import check_ids, check_k, check_real, mask_or_ids

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
    """The k best rows of a corpus for each query vector, exactly.

    Scores are canonical float32 dot products (or cosines), the same bits on every kernel variant; rows are
    ruled out early only by a proven bound. Order: higher score, then lower id.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
        Finite vectors, read as float32. On a GPU (CuPy, torch, DLPack): float32 (B, d), read in place.
    corpus : Corpus, or array_like of float (N, d)
        A raw array is wrapped by ``Corpus.from_array`` (inner product, float32) in every call, which reads
        and encodes it all (a quarter of its bytes more); build a Corpus once for more than one call.
    k : int
        At least 0; above N the rest is padding.
    allow : array_like of bool (N,) or (B, N), of int ids, or a sequence of B id lists, optional
        Rows that may be hits, for all queries or for each.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        Of the CPU. Default: HOPFUSE_NUM_THREADS, else all processors of the process.

    Returns
    -------
    Hits
        ids int64 (B, k), scores float32 (B, k), counts (B,); arrays of the library that ``queries`` came from.

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
    if not isinstance(corpus, Corpus):
        corpus = Corpus.from_array(corpus)
    device = device_for(backend, queries, "queries")
    if device is not None:
        return _on_device(device, queries, corpus, k, allow)
    engine = resolve(backend)
    vectors = _read_queries(queries, corpus)
    allowed = _read_allow(allow, vectors.shape[0], corpus.num_vectors)
    hits = engine.dense_topk(vectors, corpus, k, **allowed._asdict(), threads=thread_count(threads))
    wrap = same_library(queries)
    return Hits._trusted(**{name: wrap(array) for name, array in hits.items()})


def _on_device(device: DeviceOps, queries: Any, corpus: Corpus, k: int, allow: Any) -> Hits:
    runtime = device.runtime
    with runtime.on_stream_of(queries):
        vectors = runtime.adopt(queries)
        if vectors.dtype != np.float32 or len(vectors.shape) != 2 or vectors.shape[1] != corpus.dim:
            raise InputError(
                f"queries are {vectors.dtype}{tuple(vectors.shape)}; on a device they must be float32 of shape "
                f"(B, {corpus.dim}): convert them there"
            )
        allowed = _read_allow(allow, int(vectors.shape[0]), corpus.num_vectors)
        hits = device.dense_topk(vectors, corpus, k, **allowed._asdict())
        return Hits._trusted(**{name: runtime.export(array, queries) for name, array in hits.items()})


class _Allow(NamedTuple):
    mask: NDArray[np.uint8] | None = None
    indptr: NDArray[np.int64] | None = None
    ids: NDArray[np.int64] | None = None
    shared: bool = True


def _read_queries(queries: Any, corpus: Corpus) -> NDArray[np.float32]:
    bits = bfloat16_bits(queries, "queries")
    array = to_numpy(queries, "queries") if bits is None else bfloat16_to_float32(bits)
    check_real(array, "queries")
    if array.ndim not in (1, 2) or array.shape[-1] != corpus.dim:
        raise InputError(f"queries have shape {array.shape}; the corpus needs (B, {corpus.dim}) or ({corpus.dim},)")
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.ascontiguousarray(np.atleast_2d(array), dtype=np.float32)
        norms = np.square(vectors, dtype=np.float64).sum(axis=1)
    bad = ~(norms <= np.finfo(np.float32).max / 2)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(f"query {row} has a NaN, an infinite entry, or values too large to score in float32")
    if corpus.metric == "cosine" and (norms < np.finfo(np.float32).tiny).any():
        row = int(np.flatnonzero(norms < np.finfo(np.float32).tiny)[0])
        raise InputError(f"query {row} is the zero vector (or vanishes in float32), which has no cosine; leave it out")
    return vectors


def _read_allow(allow: Any, batch: int, n: int) -> _Allow:
    if allow is None:
        return _Allow()
    if isinstance(allow, Sequence) and allow and not isinstance(allow[0], bool | int | np.integer | np.bool_):
        refuse_per_query("allow")
        rows = [to_numpy(row, f"allow[{b}]") for b, row in enumerate(allow)]
        if len(rows) != batch:
            raise InputError(f"allow has {len(rows)} lists for {batch} queries; give one for each query")
        if any(row.dtype == np.bool_ for row in rows):
            if {row.shape for row in rows} != {(n,)}:
                raise InputError(f"allow mixes masks of shapes {[row.shape for row in rows]}; each must be ({n},)")
            return _read_allow(np.stack(rows), batch, n)
        lists = [check_ids(row, n, f"allow[{b}]") for b, row in enumerate(rows)]
        indptr = np.zeros(batch + 1, np.int64)
        np.cumsum([len(ids) for ids in lists], out=indptr[1:])
        return _Allow(indptr=indptr, ids=np.concatenate(lists), shared=False)
    mask, ids = mask_or_ids(to_numpy(allow, "allow"), n, "allow")
    if mask is not None:
        if mask.ndim == 2:
            refuse_per_query("allow")
        if mask.shape not in ((n,), (batch, n)):
            raise InputError(f"allow is a mask of shape {mask.shape}; it must be ({n},) or ({batch}, {n})")
        return _Allow(mask=np.ascontiguousarray(mask).view(np.uint8), shared=mask.ndim == 1)
    assert ids is not None
    return _Allow(indptr=np.array([0, ids.size], np.int64), ids=ids)
