"""Gumbel copula fusion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from ...errors import InputError
from .method import NONNEGATIVE, FusionMethod, ScoredList, Scores, is_number, values_of


def score(lists: Sequence[ScoredList], weights: Any, *, theta: Any, epsilon: Any) -> Scores:
    """Return exp(-(sum_l x_l^theta)^(1/theta)) over all lists, with x_l = max(-ln(c_l + epsilon), 0).

    For a document that a list lacks, c_l = 0.

    Parameters
    ----------
    theta : "auto" or float in [1, 100]
        "auto" is 1/(1 - tau) with tau clipped to [0, 0.95]; see :func:`kendall`.

    References
    ----------
    PhaseGraph's comparison set: exp(-((-ln u)^theta + (-ln v)^theta)^(1/theta)). theta from Kendall's tau: Genest &
    Rivest, "Statistical Inference Procedures for Bivariate Archimedean Copulas", Journal of the American Statistical
    Association 88, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4]), np.array([0.5])), ScoredList(np.array([4]), np.array([0.25]))]
    >>> round(score(lists, None, theta=1.0, epsilon=1e-12)[4], 6)  # independent: the product
    0.125
    """
    found = values_of([one.ids for one in lists], [one.scores for one in lists])
    power = 1.0 / (1.0 - min(max(kendall(found), 0.0), 0.95)) if theta == "auto" else float(theta)
    least = max(1e-9, math.exp(-87.0 / len(lists))) if epsilon == "auto" else float(epsilon)
    scores = {}
    for document, own in found.items():
        if min(own.values()) < 0:
            raise InputError(
                "range",
                None,
                "calibrated score {values} is negative, but -ln(c) needs c >= 0",
                values=min(own.values()),
            )
        x = [max(-math.log(own.get(number, 0.0) + least), 0.0) for number in range(len(lists))]
        most = max(x)
        inner = math.fsum((value / most) ** power for value in x) if most > 0 else 0.0
        scores[document] = math.exp(-most * inner ** (1.0 / power)) if most > 0 else 1.0
    return scores


def kendall(found: dict[int, dict[int, float]]) -> float:
    """Return Kendall's tau-a over the documents shared by two lists, pooled over all pairs of lists; 0 without any.

    Over all pairs of documents and pairs of lists that hold both: the share of pairs ranked in the same order minus the
    share ranked in opposite orders. Pairs that tie in a list count as neither.

    Examples
    --------
    >>> kendall({7: {0: 3.0, 1: 0.5}, 8: {0: 2.0, 1: 0.4}, 9: {0: 1.0, 1: 0.9}})  # one agrees, two do not
    -0.3333333333333333
    """
    balance = pairs = 0
    for a, b in combinations(found.values(), 2):
        signs = [(a[number] > b[number]) - (a[number] < b[number]) for number in a.keys() & b.keys()]
        pairs += len(signs) * (len(signs) - 1) // 2
        balance += sum(one * other for one, other in combinations(signs, 2))
    return balance / pairs if pairs else 0.0


def check(num_lists: int, *, theta: Any, epsilon: Any) -> None:
    """Check that theta is "auto" or a number from 1 to 100, and epsilon is "auto" or a number above 0."""
    if not (isinstance(theta, str) and theta == "auto") and not is_number(theta, 1, 100):
        raise InputError(
            "range", "theta", "{field} is {given!r}; it must be 'auto' or a number in [1, 100]", given=theta
        )
    if isinstance(epsilon, str) and epsilon == "auto":
        return
    if not is_number(epsilon, 0, 1e38) or epsilon == 0:
        raise InputError(
            "range", "epsilon", "{field} is {given!r}; it must be 'auto' or a finite number above 0", given=epsilon
        )


GUMBEL = FusionMethod(
    "gumbel",
    score,
    tuple(name for name in NONNEGATIVE if name != "none"),
    None,
    {"theta": "auto", "epsilon": "auto"},
    check,
)
