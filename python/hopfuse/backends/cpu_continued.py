"""Search a corpus that continues another one: its segments one by one, with the codes that other corpora share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..types.continued_corpus import ContinuedCorpus, CorpusPart
from ..types.hits import PAD_ID, PAD_SCORE
from .calls import DenseCall, HitArrays, RowFilter, SimilarityCall


def topk(
    call: DenseCall,
    corpus: ContinuedCorpus,
    search: Callable[[DenseCall, NDArray[np.int64]], HitArrays],
    rescored: NDArray[np.int64],
) -> HitArrays:
    """Return the k best rows of all segments, which are among the k best of each.

    Parameters
    ----------
    call : DenseCall
    corpus : ContinuedCorpus
        That of the call.
    search : callable
        Searches one segment, and sets the numbers of rescored rows.
    rescored : ndarray of int64, shape (B,)
        Set to their sums.
    """
    ids, scores, total = list[NDArray[np.int64]](), list[NDArray[np.float32]](), np.zeros_like(rescored)
    for segment in corpus.segments:
        k, rescored[:] = min(call.k, segment.corpus.num_vectors), 0
        found = search(call._replace(corpus=segment.corpus, k=k, allow=_of_segment(call.allow, segment)), rescored)
        is_valid = np.arange(k) < found["counts"][:, None]
        rows = found["ids"] if segment.place is None else np.searchsorted(segment.place, found["ids"])
        ids.append(np.where(is_valid, rows + segment.rows.start, PAD_ID))
        scores.append(np.where(is_valid, found["scores"], PAD_SCORE))
        total += rescored
    rescored[:] = total
    all_ids, all_scores = np.concatenate(ids, axis=1), np.concatenate(scores, axis=1)
    # ids ascend from segment to segment, and equal scores of a segment are in the order of ids
    best = np.argsort(-all_scores, axis=1, kind="stable")[:, : call.k]
    kept = np.take_along_axis(all_ids, best, axis=1)
    return {
        "ids": kept,
        "scores": np.take_along_axis(all_scores, best, axis=1),
        "counts": np.count_nonzero(kept != PAD_ID, axis=1),
    }


def similarity(
    call: SimilarityCall, corpus: ContinuedCorpus, weigh: Callable[[SimilarityCall], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return the weights of the vectors that remain, (B, N), as ``weigh`` computes them with the others left out."""
    whole = corpus.concatenated
    found = weigh(call._replace(corpus=whole.corpus, allow=_of_segment(call.allow, whole)))
    return found if whole.place is None else np.take(found, whole.place, axis=1)


def _of_segment(allow: RowFilter, segment: CorpusPart) -> RowFilter:
    """Return a filter of the corpus as a filter of a segment, which also leaves out what was removed from it."""
    rows, place, size = segment.rows, segment.place, segment.corpus.num_vectors
    if allow.indptr is not None:
        ids, indptr = allow.ids, allow.indptr
        assert ids is not None
        own = (ids >= rows.start) & (ids < rows.stop)
        kept = ids[own] - rows.start
        before = np.concatenate([[0], np.cumsum(own)])
        return RowFilter(None, before[indptr], kept if place is None else place[kept], allow.shared)
    if place is None:
        return allow if allow.mask is None else allow._replace(mask=np.ascontiguousarray(allow.mask[..., rows]))
    if allow.mask is None:
        return RowFilter(segment.mask)
    mask = np.zeros((*allow.mask.shape[:-1], size), np.uint8)
    mask[..., place] = allow.mask[..., rows]
    return allow._replace(mask=mask)
