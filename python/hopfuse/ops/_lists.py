"""Hits as arrays of the types that kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..fusion.scales import Scale
from ..types import Hits
from ..types.arrays import to_numpy
from ..types.hits import PAD_SCORE

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


def device_list(device: DeviceOps, hits: Hits, name: str) -> tuple[Any, Any, Any]:
    """ids, scores and counts on the device that they are on."""
    wanted = {"ids": np.int64, "scores": np.float32, "counts": np.int64}
    arrays = []
    for part, dtype in wanted.items():
        arrays.append(device.adopt(getattr(hits, part), f"{part} of {name}"))
        if arrays[-1].dtype != dtype:
            raise InputError(f"{part} of {name} are {arrays[-1].dtype}; they must be {np.dtype(dtype)}")
    return arrays[0], arrays[1], arrays[2]


def host_list(hits: Hits) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """ids, scores and counts as contiguous NumPy arrays."""
    return (
        np.ascontiguousarray(to_numpy(hits.ids, "ids")),
        np.ascontiguousarray(to_numpy(hits.scores, "scores")),
        np.ascontiguousarray(to_numpy(hits.counts, "counts")),
    )


def rescaled(
    array: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]], scale: Scale, pool: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """The first `pool` hits of a list with their scores on a scale."""
    ids, scores, counts = array
    kept = np.minimum(counts, pool)
    held = np.arange(scores.shape[1]) < kept[:, None]
    scaled = scale(np.where(held, scores, 0).astype(np.float64), held)
    return ids, np.where(held, scaled, PAD_SCORE).astype(np.float32), kept
