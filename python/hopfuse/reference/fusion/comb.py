"""The Comb family of Fox & Shaw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from ...errors import InputError
from .method import (
    MIN_MAX_FIRST,
    FusionMethod,
    ScoredList,
    Scores,
    is_number,
    unit_weights,
    values_of,
    weighted_sum,
)


def comb_sum(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return CombSUM: the sum of w_l c_l over the lists that hold the document.

    References
    ----------
    Fox & Shaw, "Combination of Multiple Searches", TREC-2 1993.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> comb_sum(lists, [1.0, 1.0])
    {4: 1.0, 2: 1.5}
    """
    return weighted_sum([one.ids for one in lists], [one.scores for one in lists], weights)


def comb_mnz(lists: Sequence[ScoredList], weights: Any, *, gamma: float) -> Scores:
    """Return CombMNZ: h^gamma times CombSUM, with h the number of lists that hold the document, whatever its scores.

    References
    ----------
    Fox & Shaw 1993 (gamma = 1); Lee, "Analyses of Multiple Evidence Combination", SIGIR 1997.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> comb_mnz(lists, [1.0, 1.0], gamma=1.0)
    {4: 1.0, 2: 3.0}
    """
    held = _held(lists)
    return {document: score * held[document] ** gamma for document, score in comb_sum(lists, weights).items()}


def comb_anz(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return CombANZ: CombSUM divided by the number of lists that hold the document.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> comb_anz(lists, [1.0, 1.0])
    {4: 1.0, 2: 0.75}
    """
    held = _held(lists)
    return {document: score / held[document] for document, score in comb_sum(lists, weights).items()}


def wmnz(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return WMNZ: the sum of c_l times the sum of w_l, over the lists that hold the document.

    References
    ----------
    Wu & Crestani, "Data Fusion with Estimated Weights", CIKM 2002.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> wmnz(lists, [0.5, 1.0])
    {4: 0.5, 2: 2.25}
    """
    ids = [one.ids for one in lists]
    votes = weighted_sum(ids, [np.ones(one.ids.size) for one in lists], weights)
    return {document: score * votes[document] for document, score in comb_sum(lists, [1.0] * len(lists)).items()}


def comb_min(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return CombMIN: the least c_l over the lists that hold the document.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> comb_min(lists, None)
    {4: 1.0, 2: 0.5}
    """
    return _of_held(lists, min)


def comb_max(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return CombMAX: the largest c_l over the lists that hold the document.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> comb_max(lists, None)
    {4: 1.0, 2: 1.0}
    """
    return _of_held(lists, max)


def comb_med(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return CombMED: the median of c_l over the lists that hold the document (of an even number, the mean of two).

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([1.0]))]
    >>> comb_med(lists, None)
    {4: 1.0, 2: 0.75}
    """
    return _of_held(lists, median)


def _of_held(lists: Sequence[ScoredList], rule: Callable[[list[float]], float]) -> Scores:
    found = values_of([one.ids for one in lists], [one.scores for one in lists])
    return {document: float(rule(list(own.values()))) for document, own in found.items()}


def _held(lists: Sequence[ScoredList]) -> dict[int, int]:
    found = values_of([one.ids for one in lists], [one.scores for one in lists])
    return {document: len(own) for document, own in found.items()}


def check_gamma(num_lists: int, *, gamma: Any) -> None:
    """Check that gamma is in [-16, 16] and h^gamma does not overflow float32."""
    if not is_number(gamma, -16, 16) or gamma * math.log(num_lists) > 88:
        raise InputError("range", "gamma", "{field} is {given!r}; it must be a number in [-16, 16]", given=gamma)


COMB_SUM = FusionMethod("comb_sum", comb_sum, MIN_MAX_FIRST, unit_weights)
COMB_MNZ = FusionMethod("comb_mnz", comb_mnz, MIN_MAX_FIRST, unit_weights, {"gamma": 1.0}, check_gamma)
COMB_ANZ = FusionMethod("comb_anz", comb_anz, MIN_MAX_FIRST, unit_weights)
WMNZ = FusionMethod("wmnz", wmnz, MIN_MAX_FIRST, unit_weights)
COMB_MIN = FusionMethod("comb_min", comb_min, MIN_MAX_FIRST, None)
COMB_MAX = FusionMethod("comb_max", comb_max, MIN_MAX_FIRST, None)
COMB_MED = FusionMethod("comb_med", comb_med, MIN_MAX_FIRST, None)
