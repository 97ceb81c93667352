"""Float64 oracle of dense_topk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_dtype, check_k, check_shape, wrong_array
from ..errors import InputError
from ..types import Corpus
from .ranking import Ranking, best, node_mask

__all__ = ["dense_scores", "dense_topk"]

METRICS = ("ip", "cosine")


def dense_topk(queries: Any, corpus: Any, k: int, *, metric: str | None = None, allow: Any = None) -> Ranking:
    """Return the k best vectors for each query by exact score: higher score first, then lower id.

    Parameters
    ----------
    queries : array_like of float, shape (B, d) or (d,)
    corpus : Corpus, or array_like of float, shape (N, d)
        Vector i has id i.
    k : int
        At least 0; rows with fewer hits are padded.
    metric : {"ip", "cosine"}, optional
        ``q.x``, or ``q.x / (|q| |x|)``. By default the corpus's own, "ip" for an array.
    allow : bool (N,) or (B, N), ids (m,), or a sequence of B id arrays, optional
        Vectors that may be returned.

    Returns
    -------
    Ranking, shape (B, min(k, N))

    Raises
    ------
    InputError
        A zero vector with cosine, values that are not finite, wrong shapes, a metric other than the corpus's.

    Examples
    --------
    >>> from hopfuse.reference import dense_topk
    >>> dense_topk([[1.0, 0.0]], [[0.5, 1.0], [2.0, 0.0], [0.5, 3.0]], 2).row(0)
    [(1, 2.0), (0, 0.5)]
    """
    scores = dense_scores(queries, corpus, metric=metric)
    size = min(check_k(k), scores.shape[1])
    mask = node_mask(allow, "allow", *scores.shape)
    rows = [best(np.flatnonzero(m), row[m], size) for row, m in zip(scores, mask, strict=True)]
    return Ranking.from_rows(rows, size)


def dense_scores(queries: Any, corpus: Any, *, metric: str | None = None) -> NDArray[np.float64]:
    """Return all scores of :func:`dense_topk`, shape (B, N).

    Examples
    --------
    >>> from hopfuse.reference import dense_scores
    >>> dense_scores([[3.0, 4.0]], [[1.0, 0.0]], metric="cosine")
    array([[0.6]])
    """
    q, x, kind = dense_inputs(queries, corpus, metric)
    q, x = q.astype(np.float64), x.astype(np.float64)
    scores = _dots(q, x)
    if kind == "cosine":
        scores /= np.sqrt(_squares(q))[:, None] * np.sqrt(_squares(x))
    return scores


def dense_inputs(queries: Any, corpus: Any, metric: str | None) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Check the inputs; return queries (B, d) and vectors (N, d) in their own dtypes, and the metric."""
    own = corpus.metric if isinstance(corpus, Corpus) else None
    kind = metric or own or "ip"
    check_choice(kind, "metric", METRICS)
    if own is not None and kind != own:
        raise InputError(
            "conflict",
            "metric",
            "{field} is {given!r}, but the corpus was built for {allowed!r}; omit it",
            given=metric,
            allowed=own,
        )
    q = np.atleast_2d(np.asarray(queries))
    x = corpus.as_float32() if isinstance(corpus, Corpus) else np.asarray(corpus)
    if x.ndim != 2 or x.shape[1] < 1:
        raise wrong_array(x, "vectors", "real numbers of shape (N, d), d >= 1")
    check_shape(q.shape, "queries", ("B", x.shape[1]))
    for name, rows in (("queries", q), ("vectors", x)):
        check_dtype(rows, name, "fiu", "real numbers")
        _check_rows(name, rows, kind)
    return q, x, kind


def _check_rows(name: str, rows: NDArray[Any], metric: str) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise InputError("finite", f"{name}[{bad[0]}]", "{field} holds NaN or infinity; every entry must be finite")
    zero = np.flatnonzero(~rows.any(axis=1))
    if metric == "cosine" and zero.size:
        raise InputError(
            "zero", f"{name}[{zero[0]}]", "{field} is the zero vector, which has no cosine; drop it or use metric='ip'"
        )


def _dots(q: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return q xᵀ, summed dimension by dimension so that equal vectors get equal scores."""
    total = np.zeros((q.shape[0], x.shape[0]))
    for j in range(q.shape[1]):
        total += np.multiply.outer(q[:, j], x[:, j])
    return total


def _squares(x: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros(x.shape[0])
    for j in range(x.shape[1]):
        total += x[:, j] * x[:, j]
    return total
