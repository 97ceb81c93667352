"""The share of each seed in the scores of a walk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def seed_shares(
    scores: NDArray[np.float32], mass: NDArray[np.float64], kept: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """Return the coefficients (S,) with which the walks from single seeds sum to the walk from all seeds.

    A walk is linear in its restart except for the normalisation. With y = d P'y + (1 - d) s and x = y / sum(y), if P
    loses mass m in x, then sum(y) = (1 - d) / (1 - d + d m).

    Parameters
    ----------
    scores : ndarray of float32, shape (S, N)
        The walk from each seed alone.
    mass : ndarray of float64, shape (S,)
        The restart, which sums to 1.
    kept : ndarray of float64, shape (N,)
        The share of each node's mass that P keeps.
    damping : float
    """
    lost = scores.astype(np.float64) @ (1.0 - kept)
    shares = mass * ((1.0 - damping) / (1.0 - damping + damping * lost))
    return np.asarray(shares / shares.sum(), np.float64)
