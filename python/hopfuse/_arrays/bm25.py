"""BM25 scores of terms in passages, from term counts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import native

_BLOCK = 1 << 15  # entries whose intermediate arrays fit a core's cache


def text_lengths(passages: NDArray[np.int32], counts: NDArray[np.int32], num_passages: int) -> NDArray[np.float64]:
    """Return the number of terms of each passage, repeated ones too, from the entries of a term matrix."""
    return np.bincount(passages, counts, num_passages).astype(np.float64, copy=False)


def sum_columns(
    indptr: NDArray[np.int64],
    passages: NDArray[np.int32],
    scores: NDArray[np.float32],
    terms: NDArray[np.int64],
    num_passages: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the passages whose scores in the columns of some terms sum to more than 0, in any order, and the sums."""
    room = min(num_passages, int((indptr[terms + 1] - indptr[terms]).sum()))
    found, sums = np.empty(room, np.int32), np.empty(room, np.float32)
    columns = {"indptr": indptr, "passages": passages, "scores": scores, "num_passages": num_passages}
    count = native().sum_terms(**columns, terms=terms, out_passages=found, out_sums=sums)
    return found[:count], sums[:count]


class BM25Weights(NamedTuple):
    """Weights of terms and passages, from which the scores of all entries of a term matrix follow."""

    idf: NDArray[np.float32]
    """Weight of each term: shape (V,)."""
    length: NDArray[np.float64]
    """k1 · (1 − b + b · L / L̄) of each passage: shape (P,)."""
    scale: np.float32
    """Factor of counts in the numerator."""

    @classmethod
    def of(
        cls, frequency: NDArray[np.int64], lengths: NDArray[np.float64], *, method: str, k1: float, b: float
    ) -> BM25Weights:
        """Compute the weights of terms and passages.

        Parameters
        ----------
        frequency : shape (V,)
            The number of passages that have each term.
        lengths : shape (P,)
            The number of terms of each passage, repeated ones too; not all are 0 if there is a term.
        """
        # The sum of the lengths is exact below 2^53, so the mean is rounded only once.
        return cls.of_mean(frequency, lengths, (float(lengths.sum()), lengths.size), method=method, k1=k1, b=b)

    @classmethod
    def of_mean(
        cls,
        frequency: NDArray[np.int64],
        lengths: NDArray[np.float64],
        whole: tuple[float, int],
        *,
        method: str,
        k1: float,
        b: float,
    ) -> BM25Weights:
        """Compute the weights of some terms and passages; ``whole``: the length of all passages, and their number."""
        known, place = (frequency, ...) if frequency.size == 1 else np.unique(frequency, return_inverse=True)
        total, count = whole
        idf = np.array([_idf(int(df), count, method) for df in known], np.float32)[place]
        share = b * lengths / (total / count) if total else lengths
        return cls(idf, k1 * ((1 - b) + share), np.float32(k1 + 1 if method == "atire" else 1))

    def scores(
        self, indptr: NDArray[np.int64], passages: NDArray[np.int32], counts: NDArray[np.int32], first: int = 0
    ) -> NDArray[np.float32]:
        """Return the scores of the entries of consecutive terms, the same bits as bm25s.

        Scores are computed in float64 and rounded to float32 once; idf and atire's tf · (k1 + 1) are rounded to float32
        before that.

        Parameters
        ----------
        indptr : shape (n + 1,)
            Term ``first`` + i has the entries ``indptr[i]`` .. ``indptr[i + 1] - 1``.
        passages, counts : shape (Z,)
            Passage of each entry and count of the term in it.
        """
        scores = np.repeat(self.idf[first : first + indptr.size - 1], np.diff(indptr))
        for start in range(0, scores.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            tf = counts[part].astype(np.float32)
            scores[part] = scores[part] * (tf * self.scale / (self.length[passages[part]] + tf))
        return scores


def _idf(df: int, passages: int, method: str) -> float:
    if df == 0:
        return 0.0
    if method == "atire":
        return math.log(passages / df)
    odds = (passages - df + 0.5) / (df + 0.5)
    return math.log(1 + odds) if method == "lucene" else math.log(max(odds, 1))
