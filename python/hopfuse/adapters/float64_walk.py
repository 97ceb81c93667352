"""Walks in float64, for what float32 cannot prove: one pass of a power iteration, and iterative refinement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.ppr import ppr
from ..types import Graph

Float64s = NDArray[np.float64]

#: Bound on the L1 error of the float32 walks that correct a solution, relative to the correction.
CORRECTION_TOL = 1e-3


class Float64Walk:
    """The walk over some edges, in float64.

    Parameters
    ----------
    src, dst : ndarray of int64, shape (E,)
        Undirected edges are given once.
    weight : ndarray of float64, shape (E,)
        Above 0.
    nodes : int
    directed : bool
    """

    def __init__(
        self, src: NDArray[np.int64], dst: NDArray[np.int64], weight: Float64s, nodes: int, directed: bool
    ) -> None:
        if not directed:
            loops = src == dst
            src, dst = np.concatenate([src, dst[~loops]]), np.concatenate([dst, src[~loops]])
            weight = np.concatenate([weight, weight[~loops]])
        degree = np.bincount(src, weight, nodes)
        self.src, self.dst, self.nodes = src, dst, nodes
        self.share = weight / degree[src]
        self.dangling = np.flatnonzero(degree == 0)

    def onwards(self, x: Float64s) -> Float64s:
        """Return P'x; the mass of x at dangling nodes is lost."""
        return np.asarray(np.bincount(self.dst, self.share * x[self.src], self.nodes), np.float64)

    def step(self, x: Float64s, alpha: float, restart: Float64s, lost: Float64s) -> Float64s:
        """Return alpha (P'x + m lost) + (1 - alpha) restart, where m is the mass of x at dangling nodes."""
        stepped: Float64s = alpha * (self.onwards(x) + self.at_dangling(x) * lost) + (1.0 - alpha) * restart
        return stepped

    def at_dangling(self, x: Float64s) -> float:
        """Return the mass of x at dangling nodes."""
        return float(x[self.dangling].sum())

    def unnormalised(self, q: Float64s, alpha: float) -> Float64s:
        """Return z = (1 - alpha) (I - alpha P')^-1 s for the walk q = z / sum z, whose dangling mass returns to s."""
        z: Float64s = q * ((1 - alpha) / (1 - alpha + alpha * self.at_dangling(q)))
        return z


def refine(
    graph: Graph, walk: Float64Walk, restart: Float64s, x: Float64s, alpha: float, tol: float, **options: Any
) -> tuple[Float64s, float]:
    """Return the walk from ``restart`` by iterative refinement, and the bound of its L1 error.

    The residual is computed in float64, and :func:`hopfuse.ppr` solves for the correction. The parts of the residual
    above and below 0 are the restarts of two walks. It ends when the bound is at most ``tol``, or when a round does not
    halve it.

    Parameters
    ----------
    graph : Graph
        The same edges as those of ``walk``, in float32.
    walk : Float64Walk
    restart, x : ndarray of float64, shape (N,)
        The distribution, with sum 1, and a first solution.
    alpha, tol : float
    **options
        Passed to :func:`hopfuse.ppr`.

    References
    ----------
    Wilkinson, Rounding Errors in Algebraic Processes (1963).
    """
    z = walk.unnormalised(x, alpha)
    best, least = x, walk_bound(walk, restart, x, alpha)
    while least > tol:
        z = (z + (1 - alpha) * restart + alpha * walk.onwards(z)) / 2  # errors that alternate cancel, as on a star
        residual = (1 - alpha) * restart + alpha * walk.onwards(z) - z
        z = np.maximum(z + _correction(graph, walk, residual, alpha, options), 0)
        x = z / z.sum()
        bound = walk_bound(walk, restart, x, alpha)
        halved = bound <= least / 2
        if bound < least:
            best, least = x, bound
        if not halved:
            break
    return best, least


def walk_bound(walk: Float64Walk, restart: Float64s, x: Float64s, alpha: float) -> float:
    """Return the bound of the L1 error of x: what one more pass changes, over 1 - alpha."""
    return float(np.abs(walk.step(x, alpha, restart, restart) - x).sum()) / (1 - alpha)


def _correction(graph: Graph, walk: Float64Walk, residual: Float64s, alpha: float, options: dict[str, Any]) -> Float64s:
    """Return about (I - alpha P')^-1 residual."""
    parts = [(sign, np.maximum(sign * residual, 0)) for sign in (1.0, -1.0)]
    signed = [(sign * part.sum(), part / part.sum()) for sign, part in parts if part.any()]
    if not signed:
        return np.zeros_like(residual)
    walks = ppr(graph, np.stack([part for _, part in signed]), damping=alpha, tol=CORRECTION_TOL, **options).scores
    made: Float64s = sum(
        mass * walk.unnormalised(q.astype(np.float64), alpha) for (mass, _), q in zip(signed, walks, strict=True)
    ) / (1 - alpha)
    return made
