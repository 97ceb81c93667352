"""Rankings of hits, and the top k of score rows with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gate import Rankings


def rankings(hits: Any) -> Rankings:
    """Return the ids and scores of hits."""
    return Rankings(hits.ids, hits.scores)


def top_k(scores: NDArray[Any], k: int, *, above: float = -np.inf) -> Rankings:
    """Return the k best columns of each row with scores above ``above``: higher score first, then lower id."""
    k = min(k, scores.shape[1])
    part = np.sort(np.argpartition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k :], axis=1)
    found = np.take_along_axis(scores, part, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    ids, best = np.take_along_axis(part, order, axis=1), np.take_along_axis(found, order, axis=1)
    return Rankings(np.where(best > above, ids, -1), np.where(best > above, best, -np.inf))
