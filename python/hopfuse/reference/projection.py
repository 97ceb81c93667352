"""Float64 oracle of project and project_topk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_k
from ..types import Incidence
from .ranking import Ranking, best


def project(scores: ArrayLike, incidence: Incidence, *, scale: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return u_p = scale_p Σ_e w_pe v_e for each query, (B, P).

    Parameters
    ----------
    scores : array_like (B, N) or (N,)
        v.
    incidence : Incidence
        w, P rows by N columns; 1 each without weights.
    scale : array_like (P,), optional
        Default: 1 each.

    References
    ----------
    u = Bᵀv: PolicyRAG. The passage probabilities of HippoRAG, NeurIPS 2024, section 2.3.

    Examples
    --------
    >>> import hopfuse as hf
    >>> pairs = hf.Incidence.from_pairs([0, 0, 1], [0, 2, 1], [1.0, 0.5, 2.0], num_rows=2, num_columns=3)
    >>> project([0.1, 0.2, 0.4], pairs)
    array([[0.3, 0.4]])
    """
    v = np.atleast_2d(np.asarray(scores, np.float64))
    weights = np.ones(incidence.indices.size) if incidence.weights is None else incidence.weights.astype(np.float64)
    u = np.zeros((v.shape[0], incidence.num_rows))
    for p in range(incidence.num_rows):
        row = slice(int(incidence.indptr[p]), int(incidence.indptr[p + 1]))
        u[:, p] = v[:, incidence.indices[row]] @ weights[row]
    return u if scale is None else np.asarray(u * np.asarray(scale, np.float64))


def project_topk(scores: ArrayLike, incidence: Incidence, k: Any, *, scale: ArrayLike | None = None) -> Ranking:
    """Return the k rows with the highest u_p above 0.

    Examples
    --------
    >>> import hopfuse as hf
    >>> pairs = hf.Incidence.from_pairs([0, 0, 1], [0, 2, 1], num_rows=3, num_columns=3)
    >>> project_topk([0.1, 0.2, 0.4], pairs, 3).row(0)
    [(0, 0.5), (1, 0.2)]
    """
    k = min(check_k(k), incidence.num_rows)
    rows = []
    for u in project(scores, incidence, scale=scale):
        above = np.flatnonzero(u > 0).astype(np.int64)
        rows.append(best(above, u[above], k))
    return Ranking.from_rows(rows, k)
