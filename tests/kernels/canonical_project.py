"""The bits that kernels/include/hopfuse/project.h defines, in NumPy."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
from hopfuse.reference import fma32
from numpy.typing import NDArray


def project32(
    scores: NDArray[np.float32], incidence: hf.Incidence, scale: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """(B, P): the n-th entries of all rows together, n after n."""
    length = np.diff(incidence.indptr)
    sums = np.zeros((scores.shape[0], incidence.num_rows), np.float32)
    for nth in range(int(length.max(initial=0))):
        rows = np.flatnonzero(length > nth)
        at = incidence.indptr[rows] + nth
        weights = np.ones(rows.size, np.float32) if incidence.weights is None else incidence.weights[at]
        sums[:, rows] = fma32(weights, scores[:, incidence.indices[at]], sums[:, rows])
    with np.errstate(under="ignore", over="ignore"):
        return sums if scale is None else np.asarray(sums * scale)


def best32(scores: NDArray[np.float32], k: int) -> hf.Hits:
    """The k best columns of each row above 0, no wider than there are columns."""
    k = min(k, scores.shape[1])
    rows = []
    for row in scores:
        above = np.flatnonzero(row > 0)
        order = np.lexsort((above, -row[above]))[:k]
        rows.append([(int(i), float(row[i])) for i in above[order]])
    found = hf.Hits.from_lists(rows)
    room = k - found.shape[1]
    return hf.Hits(
        np.pad(found.ids, ((0, 0), (0, room)), constant_values=-1),
        np.pad(found.scores, ((0, 0), (0, room)), constant_values=-np.inf),
        found.counts,
    )
