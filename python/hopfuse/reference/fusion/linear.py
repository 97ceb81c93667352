"""Linear fusion: a weighted sum of calibrated scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .method import EVERY, FusionMethod, ScoredList, Scores, mixture_weights, weighted_sum


def score(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return the sum of w_l c_l, with c_l the calibrated scores of list l.

    A list that lacks a document adds 0, which with "z_score" is the list's mean.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference.fusion.method import ScoredList
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> score(lists, [1.0, 0.25])
    {4: 1.0, 2: 0.75}
    """
    return weighted_sum([one.ids for one in lists], [one.scores for one in lists], weights)


LINEAR = FusionMethod("linear", score, EVERY, mixture_weights)
