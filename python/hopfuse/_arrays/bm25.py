"""BM25 scores of terms in passages, from term counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 15  # entries whose intermediate arrays fit a core's cache


def bm25_scores(
    indptr: NDArray[np.int64],
    passages: NDArray[np.int32],
    counts: NDArray[np.int32],
    num_passages: int,
    *,
    method: str,
    k1: float,
    b: float,
) -> NDArray[np.float32]:
    """Return the score of each entry of a term matrix, the same bits as bm25s.

    Scores are computed in float64 and rounded to float32 once; idf and atire's tf · (k1 + 1) are rounded to float32
    before that.

    Parameters
    ----------
    indptr : shape (V + 1,)
        Term t has the entries ``indptr[t]`` .. ``indptr[t + 1] - 1``.
    passages, counts : shape (Z,)
        Passage of each entry and count of the term in it; a passage's length is the sum of its counts.
    """
    if not passages.size:
        return np.zeros(0, np.float32)
    lengths = np.bincount(passages, weights=counts, minlength=num_passages)
    frequency, place = np.unique(np.diff(indptr), return_inverse=True)
    idf = np.array([_idf(int(df), num_passages, method) for df in frequency], np.float32)[place]
    # The sum of the counts is exact below 2^53, so the mean is rounded only once.
    share = b * lengths / (float(counts.sum(dtype=np.int64)) / num_passages)
    length = k1 * ((1 - b) + share)
    scores = np.repeat(idf, np.diff(indptr))
    for first in range(0, scores.size, _BLOCK):
        part = slice(first, first + _BLOCK)
        tf = counts[part].astype(np.float32)
        scaled = tf * np.float32(k1 + 1) if method == "atire" else tf
        scores[part] = scores[part] * (scaled / (length[passages[part]] + tf))
    return scores


def _idf(df: int, passages: int, method: str) -> float:
    if df == 0:
        return 0.0
    if method == "atire":
        return math.log(passages / df)
    odds = (passages - df + 0.5) / (df + 0.5)
    return math.log(1 + odds) if method == "lucene" else math.log(max(odds, 1))
