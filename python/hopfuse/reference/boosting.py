"""Float64 oracle of boost_weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def boost_weights(weights: Any, hits: Sequence[Sequence[tuple[int, float]]], strength: float) -> NDArray[np.float64]:
    """w_p (1 + strength s_p / max s) for the hits (p, s_p) of each query with s_p > 0; other weights stay: (B, N).

    Examples
    --------
    >>> from hopfuse.reference import boost_weights
    >>> boost_weights([[0.5, 1.0, 0.25]], [[(2, 8.0), (0, 4.0)]], 2.0)
    array([[1.  , 1.  , 0.75]])
    """
    boosted = np.array(weights, np.float64)
    for row, found in zip(boosted, hits, strict=True):
        most = max((score for _, score in found), default=0.0)
        for passage, score in found:
            if score > 0:
                row[passage] *= 1 + strength * score / most
    return boosted
