"""Select, join, pad and replace rows of hits; the dense list in place of a walk that reached no passage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...types import Hits
from ...types.hits import PAD_ID, PAD_SCORE


def take(hits: Hits, rows: NDArray[np.int64]) -> Hits:
    """Return the hits of these queries."""
    return Hits.unchecked(hits.ids[rows], hits.scores[rows], hits.counts[rows])


def gathered(parts: Sequence[tuple[NDArray[np.int64], Hits]], batch: int) -> Hits:
    """Return the hits of a batch from those of groups of its queries, all of one width; other queries have none."""
    if len(parts) == 1 and len(parts[0][0]) == batch:
        return parts[0][1]
    width = parts[0][1].ids.shape[1] if parts else 0
    ids, scores = np.full((batch, width), PAD_ID, np.int64), np.full((batch, width), PAD_SCORE, np.float32)
    counts = np.zeros(batch, np.int64)
    for rows, hits in parts:
        ids[rows], scores[rows], counts[rows] = hits.ids, hits.scores, hits.counts
    return Hits.unchecked(ids, scores, counts)


def widened(hits: Hits, k: int) -> Hits:
    """Return the first k hits of each query, padded to a width of k; hits of that width are returned as they are."""
    if hits.ids.shape[1] == k:
        return hits
    first, short = hits.head(k), ((0, 0), (0, max(0, k - hits.ids.shape[1])))
    ids, scores = (
        np.pad(first.ids, short, constant_values=PAD_ID),
        np.pad(first.scores, short, constant_values=PAD_SCORE),
    )
    return Hits.unchecked(ids, scores, first.counts)


def replaced(hits: Hits, rows: NDArray[np.int64], other: Hits) -> Hits:
    """Return the hits with these queries' hits replaced by ``other``, of the same width; other fields are kept."""
    parts = {name: array.copy() for name, array in vars(hits).items()}
    parts["ids"][rows], parts["scores"][rows], parts["counts"][rows] = other.ids, other.scores, other.counts
    return type(hits).unchecked(**parts)


def filled(hits: Hits, other: Hits) -> Hits:
    """Return ``hits`` with empty rows replaced by those of ``other``."""
    empty = hits.counts == 0
    first = other.head(hits.ids.shape[1])
    ids, scores = np.where(empty[:, None], first.ids, hits.ids), np.where(empty[:, None], first.scores, hits.scores)
    return Hits.unchecked(ids, scores, np.where(empty, first.counts, hits.counts))


_Lists = dict[str, Hits]


def fall_back(lists: _Lists, *, dense_fallback: bool) -> tuple[_Lists, NDArray[np.bool_]]:
    """Replace empty graph lists by the dense list; return the lists and a mask of these questions, (B,).

    Parameters
    ----------
    lists : dict of str to Hits
        The legs' lists. The graph list keeps its width, its positive scores and the evidence of its walks.
    dense_fallback : bool
        If False, nothing is replaced.
    """
    if not dense_fallback or "graph" not in lists or "dense" not in lists:
        return lists, np.zeros(len(next(iter(lists.values()))), bool)
    near = _above_0(lists["dense"])
    empty = (lists["graph"].counts == 0) & (near.counts > 0)
    rows = np.flatnonzero(empty)
    if rows.size == 0:
        return lists, empty
    instead = widened(take(near, rows), lists["graph"].shape[1])
    return {**lists, "graph": replaced(lists["graph"], rows, instead)}, empty


def _above_0(hits: Hits) -> Hits:
    """Return the hits with positive scores."""
    kept = hits.scores > 0  # False at padding
    ids, scores = np.where(kept, hits.ids, PAD_ID), np.where(kept, hits.scores, PAD_SCORE)
    return Hits.unchecked(ids, scores, kept.sum(axis=1, dtype=np.int64))
