"""Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from .method import FusionMethod, ScoredList, Scores, unit_weights, weighted_sum


def score(lists: Sequence[ScoredList], weights: Any, *, rank_constant: float) -> Scores:
    """Sum of w_l / (rank_constant + rank_l), ranks from 1 by position.

    Positions are those of the total order, so tied scores get different ranks (lower id first).
    A list that lacks a document adds 0. Scores do not matter beyond the order, so there is no
    calibration.

    References
    ----------
    Cormack, Clarke, Büttcher 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference.fusion.method import ScoredList
    >>> lists = [ScoredList(np.array([4, 2]), np.zeros(2)), ScoredList(np.array([2]), np.zeros(1))]
    >>> score(lists, [1.0, 1.0], rank_constant=1)
    {4: 0.5, 2: 0.8333333333333333}
    """
    values = [1.0 / (rank_constant + np.arange(1.0, one.ids.size + 1)) for one in lists]
    return weighted_sum([one.ids for one in lists], values, weights)


def check(num_lists: int, *, rank_constant: Any) -> None:
    """Check that rank_constant is a finite number, at least 0."""
    number = isinstance(rank_constant, (int, float, np.integer, np.floating)) and not isinstance(rank_constant, bool)
    if not number or not 0 <= rank_constant < np.inf:
        raise InputError(f"rank_constant is {rank_constant!r}; it must be a finite number, at least 0")


RRF = FusionMethod("rrf", score, (), unit_weights, {"rank_constant": 60}, check)
