"""Boost weights of passages on the CPU, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .calls import BoostCall


def boost_weights(call: BoostCall) -> NDArray[np.float32]:
    """Return boosted weights, (B, N), the same bits as kernels/cuda/boost_weights_f32.cu."""
    weights, ids, scores, counts = (np.asarray(array) for array in call[:4])
    raised = (np.arange(ids.shape[1]) < counts[:, None]) & (scores > 0)
    most = np.where(raised, scores, np.float32(0)).max(axis=1, initial=0, keepdims=True)
    share = np.divide(scores, most, out=np.zeros(scores.shape, np.float32), where=raised)
    query, at = np.nonzero(raised)
    boosted = weights.copy()
    boosted[query, ids[query, at]] *= np.float32(1) + np.float32(call.strength) * share[query, at]
    return boosted
