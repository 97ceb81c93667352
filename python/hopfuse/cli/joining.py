"""Lists of batches as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import Hits


def joined(parts: Sequence[Hits]) -> Hits:
    """The rows of several batches of the same width, one after another.

    Examples
    --------
    >>> joined([Hits([[1]], [[0.5]]), Hits([[2]], [[0.7]])]).ids.tolist()
    [[1], [2]]
    """
    ids, scores, counts = (np.concatenate([getattr(p, name) for p in parts]) for name in ("ids", "scores", "counts"))
    return Hits(ids, scores, counts)
