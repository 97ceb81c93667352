"""Scales that other systems put scores on and that no calibration here has, in float64 on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: (scores (B, k), which of them hold a hit (B, k)) -> scores on the scale (B, k); where no hit is, anything finite.
Scale: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]


def min_max(*, flat: float | None, floor: float = 0.0) -> Scale:
    """(s - min)/(max - min), and `floor` where that is 0.

    Parameters
    ----------
    flat : float, optional
        What equal scores, or a single one, become; without it 1 where they are above 0, and 0 otherwise.
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
    flat: float | None,
) -> NDArray[np.float64]:
    """(s - low)/width, and `flat` where the scores of a list are equal."""
    least, most = _ends(scores, held)
    level = np.where(most > 0, 1.0, 0.0) if flat is None else np.full_like(most, flat)
    spread = (most > least) & (width > 0)
    inside = np.where(held, scores, low)
    return np.where(spread, (inside - low) / np.where(spread, width, 1.0), level)
