"""The canonical float32 scores, which every dense kernel returns bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_k
from ..errors import InputError
from ..types import Hits
from .dense import dense_inputs
from .ranking import Ranking, best, node_mask

__all__ = ["canonical_dot", "canonical_scores", "dense_topk_canonical", "fma32"]

LANES = 16
#: Accumulators that are updated at a time, so that they stay in the cache.
_CHUNK = 1 << 14


def fma32(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> NDArray[np.float32]:
    """Return a * b + c in float32 with one rounding (IEEE fused multiply-add), element by element.

    The product of two float32 numbers is exact in float64. The sum is rounded *to odd* in float64 (an inexact sum
    becomes the neighbour whose last bit is 1), so that rounding it to float32 equals rounding the exact value. A plain
    float64 sum would be rounded twice.

    Examples
    --------
    With u the unit in the last place of 1, the exact value is slightly below 1 + 1.5 u; rounding twice gives 1 + 2 u:

    >>> import numpy as np
    >>> u = 2.0**-23
    >>> a, b, c = np.float32(2**-12 * (1 + u)), np.float32(2**-12 * (1 - u)), np.float32(1 + u)
    >>> twice = np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    >>> float(fma32(a, b, c) - 1) / u, float(twice - 1) / u
    (1.0, 2.0)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32).astype(np.float64)
        return _sum_to_odd(product, np.asarray(c, np.float32).astype(np.float64)).astype(np.float32)


def _sum_to_odd(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.asarray(x + y)
    back = total - x
    error = (x - (total - back)) + (y - back)  # TwoSum: total + error is the exact sum
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0)
    return np.nextafter(total, np.copysign(np.inf, error), out=total, where=inexact & even)


def canonical_dot(q: ArrayLike, x: ArrayLike) -> NDArray[np.float32]:
    """Return dot products in the order of operations that all kernels share.

    Both vectors are zero-padded to a multiple of 16. Sixteen float32 accumulators start at +0 and are updated by
    a_j = fma(q[16 i + j], x[16 i + j], a_j) for i = 0, 1, ...; then a_j = a_j + a_(j + h) for j < h, with
    h = 8, 4, 2, 1. The dot is a_0.

    Parameters
    ----------
    q, x : array_like of float32 (or float16), shapes (..., d)
        Leading dimensions broadcast.

    Returns
    -------
    ndarray of float32, the broadcast leading shape

    Examples
    --------
    >>> from hopfuse.reference import canonical_dot
    >>> float(canonical_dot([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    32.0
    """
    q32, x32 = np.broadcast_arrays(_lanes(q), _lanes(x))
    acc = np.zeros((*q32.shape[:-2], LANES), np.float32)
    for i in range(q32.shape[-2]):
        acc = fma32(q32[..., i, :], x32[..., i, :], acc)
    for half in (8, 4, 2, 1):
        acc = acc[..., :half] + acc[..., half:]
    return np.asarray(acc[..., 0])


def _lanes(values: ArrayLike) -> NDArray[np.float32]:
    v = np.asarray(values, np.float32)
    padded = np.zeros((*v.shape[:-1], -(-v.shape[-1] // LANES) * LANES), np.float32)
    padded[..., : v.shape[-1]] = v
    return padded.reshape((*v.shape[:-1], padded.shape[-1] // LANES, LANES))


def canonical_scores(queries: Any, vectors: Any, *, metric: str | None = None) -> NDArray[np.float32]:
    """Return all canonical scores, (B, N): the dot, or dot / (sqrt(q.q) * sqrt(x.x)), in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference import canonical_scores
    >>> canonical_scores(np.float32([[3, 4]]), np.float32([[1, 0]]), metric="cosine")
    array([[0.6]], dtype=float32)
    """
    q, x, kind = dense_inputs(queries, vectors, metric)
    q_squares, x_squares = _squares("queries", q, kind), _squares("vectors", x, kind)
    scores = np.zeros((q.shape[0], x.shape[0]), np.float32)
    step = max(1, _CHUNK // (LANES * max(1, q.shape[0])))
    for start in range(0, x.shape[0], step):
        scores[:, start : start + step] = canonical_dot(q[:, None], x[start : start + step])
    if kind == "cosine":
        scores /= np.sqrt(q_squares)[:, None] * np.sqrt(x_squares)
    return scores


def _squares(name: str, rows: NDArray[Any], metric: str) -> NDArray[np.float32]:
    """Return canonical squared norms, and raise unless they are finite; then every score is, too."""
    if rows.dtype not in (np.float32, np.float16):
        raise InputError(
            "dtype",
            name,
            "{field} has the dtype {given}; canonical scores are defined on {allowed}",
            given=rows.dtype,
            allowed="float32 and float16",
        )
    squares = canonical_dot(rows, rows)
    wrong = np.flatnonzero(~np.isfinite(squares) | ((squares == 0) & (metric == "cosine")))
    if wrong.size:
        raise InputError(
            "range",
            f"{name}[{wrong[0]}]",
            "{field} has the squared norm {given} in float32; rescale it",
            given=squares[wrong[0]],
        )
    return squares


def dense_topk_canonical(queries: Any, vectors: Any, k: int, *, metric: str | None = None, allow: Any = None) -> Hits:
    """Rank all vectors by canonical score; ``hopfuse.dense_topk`` must give the same bits.

    Parameters
    ----------
    queries : ndarray of float32 or float16, shape (B, d)
    vectors : Corpus, or ndarray of float32 or float16, shape (N, d)
    k, metric, allow
        As in :func:`hopfuse.reference.dense_topk`.

    Returns
    -------
    Hits, shape (B, min(k, N))

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference import dense_topk_canonical
    >>> dense_topk_canonical(np.float32([[1, 0]]), np.float32([[2, 1], [2, 5], [3, 0]]), 2).ids
    array([[2, 0]])
    """
    scores = canonical_scores(queries, vectors, metric=metric)
    size = min(check_k(k), scores.shape[1])
    mask = node_mask(allow, "allow", *scores.shape)
    rows = (best(np.flatnonzero(m), row[m].astype(np.float64), size) for row, m in zip(scores, mask, strict=True))
    ranked = Ranking.from_rows(rows, size)
    return Hits(ranked.ids, ranked.scores, ranked.counts)
