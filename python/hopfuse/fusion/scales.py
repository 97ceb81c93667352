"""Scales that other systems put scores on and that no calibration here has, in float64 on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: (scores (B, k), which of them hold a hit (B, k)) -> scores on the scale (B, k); where no hit is, anything finite.
Scale: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]
#: What equal scores, or a single one, become: a number, what they are, or 1 where they are above 0 and 0 otherwise.
Flat: TypeAlias = float | Literal["kept", "sign"]


def three_sigma(*, ddof: int, flat: Flat) -> Scale:
    """(s - mean + 3 sigma)/(6 sigma), not cut to [0, 1].

    Parameters
    ----------
    ddof : {0, 1}
        0 for the population deviation, 1 for the sample deviation.
    flat : float, "kept" or "sign"
        What equal scores, or a single one, become: a number, what they are, or 1 where above 0 and 0 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.fusion.scales import three_sigma
    >>> three_sigma(ddof=0, flat=0.5)(np.array([[4.0, 2.0]]), np.array([[True, True]])).round(4)
    array([[0.6667, 0.3333]])
    """

    def scale(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float64]:
        count = held.sum(axis=1, keepdims=True)
        mean = scores.sum(axis=1, keepdims=True, where=held) / np.maximum(count, 1)
        squares = np.square(scores - mean, where=held, out=np.zeros_like(scores)).sum(axis=1, keepdims=True)
        sigma = np.sqrt(squares / np.maximum(count - ddof, 1))
        return _spread(scores, held, mean - 3.0 * sigma, 6.0 * sigma, flat)

    return scale


def min_max(*, flat: Flat, floor: float = 0.0) -> Scale:
    """(s - min)/(max - min), and `floor` where that is 0.

    Parameters
    ----------
    flat : float, "kept" or "sign"
        What equal scores, or a single one, become: a number, what they are, or 1 where above 0 and 0 otherwise.
    floor : float
        What the least score becomes.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.fusion.scales import min_max
    >>> min_max(flat=1.0, floor=0.001)(np.array([[4.0, 3.0, 2.0]]), np.ones((1, 3), bool))
    array([[1.   , 0.5  , 0.001]])
    """

    def scale(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float64]:
        least, most = _ends(scores, held)
        scaled = _spread(scores, held, least, most - least, flat)
        return np.where((scores == least) & (most > least), floor, scaled)

    return scale


def by_largest(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float64]:
    """s / max(max s, 1e-9): scores below 0 count as such in the maximum.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.fusion.scales import by_largest
    >>> by_largest(np.array([[1.0, -4.0]]), np.array([[True, True]]))
    array([[ 1., -4.]])
    """
    return np.where(held, scores, 0.0) / np.maximum(_ends(scores, held)[1], 1e-9)


def _ends(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest score of each list, (B, 1): 0 for an empty one."""
    some = held.any(axis=1, keepdims=True)
    least = scores.min(axis=1, keepdims=True, where=held, initial=np.inf)
    most = scores.max(axis=1, keepdims=True, where=held, initial=-np.inf)
    return np.where(some, least, 0.0), np.where(some, most, 0.0)


def _spread(
    scores: NDArray[np.float64],
    held: NDArray[np.bool_],
    low: NDArray[np.float64],
    width: NDArray[np.float64],
    flat: Flat,
) -> NDArray[np.float64]:
    """(s - low)/width, and `flat` where the scores of a list are equal."""
    least, most = _ends(scores, held)
    if flat == "kept":
        level = most
    elif flat == "sign":
        level = np.where(most > 0, 1.0, 0.0)
    else:
        level = np.full_like(most, flat)
    spread = (most > least) & (width > 0)
    inside = np.where(held, scores, low)
    return np.where(spread, (inside - low) / np.where(spread, width, 1.0), level)
