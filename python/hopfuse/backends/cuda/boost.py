"""Boost weights of passages on a device."""

from __future__ import annotations

import numpy as np

from ..calls import BoostCall
from .runtime import DeviceArray, Runtime

THREADS = 256


def boost_weights(runtime: Runtime, call: BoostCall) -> tuple[DeviceArray, DeviceArray]:
    """Return boosted weights, (B, N), and each query's status."""
    batch, columns = (int(side) for side in call.weights.shape)
    boosted, status = runtime.empty((batch, columns), np.float32), runtime.empty(batch, np.int32)
    if batch:
        runtime.copy(boosted, call.weights)
        hits = [call.ids, call.scores, call.counts, np.int32(call.ids.shape[1])]
        arguments = [boosted, np.int64(columns), *hits, np.float32(call.strength), status]
        runtime.launch("boost_weights_f32", batch, THREADS, arguments)
    return boosted, status
