"""Convert Hits to arrays of the dtypes that kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from ..errors import InputError
from ..types import Hits

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


def device_list(device: DeviceOps, hits: Hits, name: str) -> tuple[Any, Any, Any]:
    """Return ids, scores and counts as arrays of the device, without a copy."""
    wanted = {"ids": np.int64, "scores": np.float32, "counts": np.int64}
    arrays = []
    for part, dtype in wanted.items():
        arrays.append(device.adopt(getattr(hits, part), f"{part} of {name}"))
        if arrays[-1].dtype != dtype:
            raise InputError(
                "dtype",
                None,
                "{part} of {name} have dtype {dtype}; it must be {allowed}",
                part=part,
                name=name,
                dtype=arrays[-1].dtype,
                allowed=np.dtype(dtype),
            )
    return arrays[0], arrays[1], arrays[2]


def host_list(hits: Hits) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return ids, scores and counts as contiguous NumPy arrays."""
    return (
        np.ascontiguousarray(to_numpy(hits.ids, "ids")),
        np.ascontiguousarray(to_numpy(hits.scores, "scores")),
        np.ascontiguousarray(to_numpy(hits.counts, "counts")),
    )
