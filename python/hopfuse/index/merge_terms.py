"""BM25's terms after changes: the counts of remaining and added passages, and new scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import TermMatrix
from .delta import DeltaRows


def merge_terms(matrix: TermMatrix, delta: DeltaRows, place: NDArray[np.int64], num_passages: int) -> TermMatrix:
    """Return the matrix of the remaining passages; ``place`` holds the row of each slot, -1 if it was deleted.

    Rows are in the order of slots, so new entries of a term follow its old ones. Only the new entries and the words are
    sorted.
    """
    if matrix.counts is None:
        raise InputError("the lexical part has no counts; build it again with BM25.build")
    indptr, rows, counts = _kept(matrix, matrix.counts, place)
    lives = place[delta["lexical.passage"]] >= 0
    term, row, count = (delta[f"lexical.{part}"][lives] for part in ("term", "passage", "count"))
    row = place[row]
    words = [*matrix.terms, *delta.new_terms]
    frequency = np.zeros(len(words), np.int64)
    frequency[: len(matrix.terms)] = np.diff(indptr)
    own = frequency + np.bincount(term, minlength=len(words))
    ranked = sorted(np.flatnonzero(own).tolist(), key=words.__getitem__)
    rank = np.zeros(len(words), np.int64)
    rank[ranked] = np.arange(len(ranked))
    order = np.lexsort((row, rank[term]))
    behind = np.cumsum(frequency[ranked])[rank[term[order]]]
    return TermMatrix.from_counts(
        terms=[words[t] for t in ranked],
        indptr=np.concatenate([[0], np.cumsum(own[ranked])]).astype(np.int64),
        passages=np.insert(rows, behind, row[order]),
        counts=np.insert(counts, behind, count[order]),
        num_passages=num_passages,
        method=matrix.method,
        k1=matrix.k1,
        b=matrix.b,
        stopwords=matrix.stopwords,
        stemmer=matrix.stemmer,
    )


def _kept(
    matrix: TermMatrix, counts: NDArray[np.int32], place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the indptr, rows and counts of a generation's entries for remaining passages."""
    row = place[: matrix.num_passages].astype(np.int32)
    rows = row[matrix.passages]
    if (row >= 0).all():
        return matrix.indptr, rows, counts
    lives = rows >= 0
    before = np.concatenate([[0], np.cumsum(lives)])
    return before[matrix.indptr], rows[lives], counts[lives]
