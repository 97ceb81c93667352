"""BM25's terms after a change: counts of the passages that are left and of those that came, and scores of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import indptr_of
from ..errors import InputError
from ..types import TermMatrix
from .batch import Batch


class _Entries(NamedTuple):
    """Terms, passages (slots, or rows) and counts."""

    term: NDArray[np.int64]
    row: NDArray[Any]
    count: NDArray[np.int32]


def _placed(entries: _Entries, place: NDArray[np.int64]) -> _Entries:
    """Return the entries of passages that live, by their rows."""
    rows = place[entries.row] if place.size else np.full(entries.row.shape, -1)
    kept = rows >= 0
    return _Entries(entries.term[kept], rows[kept], entries.count[kept])


def merge_terms(
    matrix: TermMatrix, batches: Sequence[Batch], place: NDArray[np.int64], num_passages: int
) -> TermMatrix:
    """Return the matrix of the passages that live; ``place`` has the row of each slot, -1 where it lives no more."""
    if matrix.counts is None:
        raise InputError("the lexical part keeps no counts; build it anew with BM25.build")
    number = {word: t for t, word in enumerate(matrix.terms)} if batches else {}
    parts = [_Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))]
    for batch in batches:
        own = np.array([number.setdefault(word, len(number)) for word in batch.strings("lexical.term")], np.int64)
        terms = np.repeat(own, np.diff(batch["lexical.indptr"])) if own.size else own
        parts.append(_Entries(terms, batch["lexical.passage"] + batch.before.passages, batch["lexical.count"]))
    words = [*number] or list(matrix.terms)
    base = _Entries(np.repeat(np.arange(len(matrix.terms)), np.diff(matrix.indptr)), matrix.passages, matrix.counts)
    there = _placed(base, place)
    come = _placed(_Entries(*(np.concatenate(columns) for columns in zip(*parts, strict=True))), place)
    used = np.bincount(there.term, minlength=len(words)) + np.bincount(come.term, minlength=len(words)) > 0
    ranked = sorted(np.flatnonzero(used).tolist(), key=words.__getitem__)
    rank = np.zeros(len(words), np.int64)
    rank[ranked] = np.arange(len(ranked))
    # The generation's entries stay in their order, so what came is put among them, and nothing is sorted but that.
    width = max(num_passages, 1)
    key, new = rank[there.term] * width + there.row, rank[come.term] * width + come.row
    order = np.argsort(new)
    at = np.searchsorted(key, new[order])
    columns, rows = np.divmod(np.insert(key, at, new[order]), width)
    indptr = indptr_of(columns, len(ranked))
    counts = np.insert(there.count, at, come.count[order])
    return TermMatrix.from_counts(
        terms=[words[t] for t in ranked],
        indptr=indptr,
        passages=rows.astype(np.int32),
        counts=counts.astype(np.int32),
        num_passages=num_passages,
        method=matrix.method,
        k1=matrix.k1,
        b=matrix.b,
        stopwords=matrix.stopwords,
        stemmer=matrix.stemmer,
    )
