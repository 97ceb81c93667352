"""Seeds of seeds and hits on the host; kernels/cuda/seed_hits.cu gives the same bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def seed_hits(
    node: NDArray[np.int64],
    weight: NDArray[np.float64],
    ids: NDArray[np.int64],
    scores: NDArray[np.float32],
    counts: NDArray[np.int64],
    mass: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nodes and weights, (B, S + k)."""
    held = np.arange(ids.shape[1]) < counts[:, None]
    score = np.where(held & (scores > 0), scores.astype(np.float64), 0.0)
    own = _over(weight, _sum(weight))
    share = _over(mass * score, _sum(score))
    same = (ids[:, :, None] == node[:, None, :]) & (node >= 0)[:, None, :] & (score > 0)[:, :, None]
    for j in range(ids.shape[1]):  # in order, as the kernel adds them
        own = np.where(same[:, j], own + share[:, j, None], own)
    is_new = (score > 0) & ~same.any(axis=2)
    nodes = np.concatenate([node, np.where(is_new, ids, -1)], axis=1)
    return nodes, np.concatenate([own, np.where(is_new, share, 0.0)], axis=1)


def _sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(B, 1) sums from left to right."""
    if not values.shape[1]:
        return np.zeros((values.shape[0], 1))
    with np.errstate(over="ignore"):  # a sum beyond float64 is for the walk to refuse
        return np.cumsum(values, axis=1)[:, -1:]


def _over(values: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(values, total, out=values.copy(), where=(total > 0) & np.isfinite(total))
