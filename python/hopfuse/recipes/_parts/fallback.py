"""The dense list as a substitute for a walk that reached no passage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import Hits
from ...types.hits import PAD_ID, PAD_SCORE
from .hits import replaced, take, widened

Lists = dict[str, Hits]


def fall_back(lists: Lists, *, dense_fallback: bool) -> tuple[Lists, NDArray[np.bool_]]:
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
