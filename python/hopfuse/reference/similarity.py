"""Float64 oracle of similarity_weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Corpus
from .dense import dense_scores
from .ranking import node_mask

#: The smallest standard deviation; rounding may produce smaller ones from equal cosines.
LEAST_SPREAD = 2.0**-16


def similarity_weights(
    queries: Any, corpus: Any, *, tau: float, floor: float = 1e-4, allow: Any = None
) -> NDArray[np.float64]:
    """Return max(exp((c - max c) / (tau s)), floor), (B, N), of the cosines c, with s their standard deviation.

    Parameters
    ----------
    queries : array_like of float, shape (B, d) or (d,)
    corpus : Corpus, or array_like of float, shape (N, d)
        Without zero vectors. Cosines are used whatever its metric.
    tau : float
        In units of s, which is at least 2⁻¹⁶.
    allow : bool (N,) or (B, N), ids (m,), or a sequence of B id arrays, optional
        The vectors of which the maximum and s are taken; others get weight 0.

    Examples
    --------
    >>> from hopfuse.reference import similarity_weights
    >>> similarity_weights([[1.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]], tau=2.0)
    array([[1.        , 0.36787944]])
    """
    vectors = corpus.as_float32() if isinstance(corpus, Corpus) else corpus
    cosines = dense_scores(queries, vectors, metric="cosine")
    mask = node_mask(allow, "allow", *cosines.shape)
    weights = np.zeros(cosines.shape)
    for row, c, m in zip(weights, cosines, mask, strict=True):
        row[m] = _weights(c[m], tau, floor)
    return weights


def _weights(c: NDArray[np.float64], tau: float, floor: float) -> NDArray[np.float64]:
    if not c.size:
        return c
    spread = np.sqrt(np.mean((c - c.mean()) ** 2))
    return np.asarray(np.maximum(np.exp((c - c.max()) / (tau * max(spread, LEAST_SPREAD))), floor))
