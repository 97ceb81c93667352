"""The result of :func:`hopfuse.ppr`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
