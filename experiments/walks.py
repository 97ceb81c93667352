"""Guided walks in SciPy: edges into a passage are weighted by its similarity to the question."""

from __future__ import annotations

import numpy as np
from scipy import sparse

FLOOR = 1e-4


def potentials(similarity: np.ndarray, num_nodes: int, tau: float) -> np.ndarray:
    """Return node weights (N, B): max(exp((cos − max cos) / tau), FLOOR) on passages, the first nodes; 1 on entities.

    Examples
    --------
    >>> potentials(np.array([[0.5], [0.4]], np.float32), 3, 0.1).round(2).ravel().tolist()
    [1.0, 0.3700000047683716, 1.0]
    """
    z = np.ones((num_nodes, similarity.shape[1]), np.float32)
    best = similarity.max(axis=0, keepdims=True)
    z[: len(similarity)] = np.maximum(np.exp((similarity - best) / tau), FLOOR)
    return z


def guided_walk(
    matrix: sparse.csr_array, restarts: np.ndarray, z: np.ndarray, damping: float = 0.5, passes: int = 14
) -> np.ndarray:
    """Return Personalized PageRank (N, B) over edges u–v of weight z_u · w_uv · z_v.

    Parameters
    ----------
    matrix : csr_array of float32 (N, N)
        Symmetric.
    restarts : ndarray of float32 (N, B)
        Columns sum to 1, or are zero.
    z : ndarray of float32 (N, B)
    damping : float
    passes : int
        0.5 ** 14 is 6e-5 of the mass.

    Examples
    --------
    >>> path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32))
    >>> start = np.array([[0], [1], [0]], np.float32)
    >>> guided_walk(path, start, np.array([[1], [1], [3]], np.float32)).round(2).ravel().tolist()
    [0.07999999821186066, 0.6700000166893005, 0.25]
    """
    degree = matrix @ z
    degree[degree == 0] = 1
    x = restarts.copy()
    for _ in range(passes):
        x = (1 - damping) * restarts + damping * (z * (matrix @ (x / degree)))
    return x
