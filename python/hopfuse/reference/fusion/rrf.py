"""Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from .method import FusionMethod, ScoredList, Scores, is_number, unit_weights, weighted_sum


def score(lists: Sequence[ScoredList], weights: Any, *, rank_constant: float) -> Scores:
    """Return the sum of w_l / (rank_constant + rank_l) over the lists that hold the document; ranks start at 1.

    Ranks are positions in the total order, so tied scores get different ranks (lower id first). Scores matter only
    through the order, so there is no calibration.

    References
    ----------
    Cormack, Clarke & Büttcher, SIGIR 2009.

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
    if not is_number(rank_constant, 0, np.inf) or np.isinf(rank_constant):
        raise InputError(
            "range",
            "rank_constant",
            "{field} is {given!r}; it must be a finite number, at least 0",
            given=rank_constant,
        )


RRF = FusionMethod("rrf", score, (), unit_weights, {"rank_constant": 60}, check)
