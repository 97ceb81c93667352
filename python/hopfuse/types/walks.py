"""The results of walks: Personalized PageRank of all nodes, or of the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .hits import Hits


@dataclass(frozen=True, eq=False)
class PprResult:
    """Personalized PageRank scores, with error bounds.

    Attributes
    ----------
    scores : ndarray of float32, shape (B, N)
        Row b sums to 1 up to float32 rounding; column v is the caller's node id v.
    iterations : ndarray of int64, shape (B,)
        Passes over the graph that the query took.
    residual : ndarray of float64, shape (B,)
        L1 norm of d Pᵀx + (1 - d) s - x for the returned float32 row, evaluated in float64.
    bound : ndarray of float64, shape (B,)
        Upper bound of the L1 distance between the returned row and the exact solution, including float32 rounding:
        residual / (1 - damping), rounded up.
    converged : ndarray of bool, shape (B,)
        bound <= tol. False says that the error is not proven to be at most tol, not that it is larger.

    Examples
    --------
    >>> import hopfuse as hf
    >>> r = hf.ppr(hf.Graph.from_edges([0], [1], directed=True), [{0: 1.0}], tol=1e-5)
    >>> r.scores, r.converged
    (array([[0.6666667 , 0.33333334]], dtype=float32), array([ True]))
    >>> bool((abs(r.scores - [2 / 3, 1 / 3]).sum() <= r.bound).all())
    True
    """

    scores: NDArray[np.float32]
    iterations: NDArray[np.int64]
    residual: NDArray[np.float64]
    bound: NDArray[np.float64]
    converged: NDArray[np.bool_]

    def __repr__(self) -> str:
        b, n = self.scores.shape
        passes, bound, converged = (np.asarray(a) for a in (self.iterations, self.bound, self.converged))
        return (
            f"PprResult(queries={b}, nodes={n}, iterations<={int(passes.max(initial=0))}, "
            f"bound<={float(bound.max(initial=0.0)):.2e}, converged={int(converged.sum())}/{b})"
        )


class LocalWalks(NamedTuple):
    """How the queries of a batch walked locally, by pushes that read only the rows that they need; on the host."""

    local: NDArray[np.bool_]
    """(B,) whether the hits are those of a local walk; otherwise they are those of passes over the graph."""
    rounds: NDArray[np.int64]
    """(B,) rounds of pushes."""
    rows: NDArray[np.int64]
    """(B,) rows that were pushed."""
    entries: NDArray[np.int64]
    """(B,) entries that were read, of pushed rows and of rows that the proof looked at."""

    @classmethod
    def none(cls, batch: int) -> LocalWalks:
        """Return those of a batch of which no query walks locally."""
        return cls(np.zeros(batch, np.bool_), *(np.zeros(batch, np.int64) for _ in range(3)))


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PprHits(Hits):
    """Hits of :func:`hopfuse.ppr_topk`, with error bounds.

    Attributes
    ----------
    score_bounds : ndarray of float32, shape (B, k)
        Upper bound of ``|score - exact score|``, per hit.
    proven : ndarray of bool, shape (B,)
        Whether the set and order of the hits are proven to equal those of the exact scores; with ``prove="set"``,
        whether the set is.
    iterations : ndarray of int64, shape (B,)
        Passes over the graph spent on the query.
    residual, bound : ndarray of float64, shape (B,)
        L1 residual of the iterate that the scores come from, and the bound of its L1 error.
    converged : ndarray of bool, shape (B,)
        bound <= tol. A query that stopped when it was proven need not have converged.

    Examples
    --------
    >>> import hopfuse as hf
    >>> h = hf.ppr_topk(hf.Graph.from_edges([0, 1, 1], [1, 2, 3], [4.0, 2.0, 1.0]), [{0: 1.0}], 3)
    >>> h.ids, h.proven
    (array([[0, 1, 2]]), array([ True]))
    """

    score_bounds: NDArray[np.float32]
    proven: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    residual: NDArray[np.float64]
    bound: NDArray[np.float64]
    converged: NDArray[np.bool_]

    @property
    def walks(self) -> LocalWalks | None:
        """How queries walked locally, also if this did not prove their hits; None if no query did."""
        return vars(self).get("_walks")
