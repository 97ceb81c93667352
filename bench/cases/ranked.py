"""Top-k of score rows with NumPy, as a peer's user would write it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gate import Rankings


def top_k(scores: NDArray[Any], k: int, *, above: float = -np.inf) -> Rankings:
    """The k best columns of each row: higher score first, then lower id; scores up to ``above`` are left out."""
    k = min(k, scores.shape[1])
    part = np.sort(np.argpartition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k :], axis=1)
    found = np.take_along_axis(scores, part, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    ids, best = np.take_along_axis(part, order, axis=1), np.take_along_axis(found, order, axis=1)
    return Rankings(np.where(best > above, ids, -1), np.where(best > above, best, -np.inf))
