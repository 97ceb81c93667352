"""The share of each seed in the scores of a walk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def seed_shares(
    scores: NDArray[np.float32], mass: NDArray[np.float64], kept: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """Return the shares (S,) by which the walks of single seeds add up to the walk from all of them.

    A walk is linear in its restart but for its normalisation: with y = d P'y + (1 - d) s and x = y / sum(y), mass m
    that P loses in x gives sum(y) = (1 - d) / (1 - d + d m).

    Parameters
    ----------
    scores : ndarray of float32, shape (S, N)
        Of the walk from each seed alone.
    mass : ndarray of float64, shape (S,)
        The restart; it sums to 1.
    kept : ndarray of float64, shape (N,)
        What P keeps of the mass of each node.
    damping : float
    """
    lost = scores.astype(np.float64) @ (1.0 - kept)
    shares = mass * ((1.0 - damping) / (1.0 - damping + damping * lost))
    return np.asarray(shares / shares.sum(), np.float64)
