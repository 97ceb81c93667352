"""BM25's terms after a change: counts of the passages that are left and of those that came, and scores of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import indptr_of
from ..errors import InputError
from ..types import TermMatrix
from .batch import Batch


def merge_terms(
    matrix: TermMatrix, batches: Sequence[Batch], place: NDArray[np.int64], num_passages: int
) -> TermMatrix:
    """Return the matrix of the passages that live; ``place`` has the row of each slot, -1 where it lives no more."""
    if matrix.counts is None:
        raise InputError("the lexical part keeps no counts; build it anew with BM25.build")
    term = [np.repeat(np.arange(len(matrix.terms)), np.diff(matrix.indptr))]
    passage, counts = [matrix.passages.astype(np.int64)], [matrix.counts]
    number = {word: t for t, word in enumerate(matrix.terms)} if batches else {}
    for batch in batches:
        own = np.array([number.setdefault(word, len(number)) for word in batch.strings("lexical.term")], np.int64)
        term.append(np.repeat(own, np.diff(batch["lexical.indptr"])) if own.size else own)
        passage.append(batch["lexical.passage"] + batch.before.passages)
        counts.append(batch["lexical.count"])
    terms, slots, count = np.concatenate(term), np.concatenate(passage), np.concatenate(counts)
    kept = place[slots] >= 0
    terms, rows, count = terms[kept], place[slots[kept]], count[kept]
    words = [*number] or list(matrix.terms)
    used = np.flatnonzero(np.bincount(terms, minlength=len(words)))
    ranked = sorted(used.tolist(), key=words.__getitem__)
    rank = np.zeros(len(words), np.int64)
    rank[ranked] = np.arange(len(ranked))
    terms = rank[terms]
    order = np.argsort(terms * max(num_passages, 1) + rows, kind="stable")
    return TermMatrix.from_counts(
        terms=[words[t] for t in ranked],
        indptr=indptr_of(terms, len(ranked)),
        passages=rows[order].astype(np.int32),
        counts=count[order].astype(np.int32),
        num_passages=num_passages,
        method=matrix.method,
        k1=matrix.k1,
        b=matrix.b,
        stopwords=matrix.stopwords,
        stemmer=matrix.stemmer,
    )
