"""Convert Hits to arrays of the dtypes that kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import check_type
from ..errors import InputError
from ..types import Hits

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


def check_hits(hits: Any, field: str = "hits") -> Hits:
    """Return Hits."""
    checked: Hits = check_type(hits, field, Hits, "Hits: hf.Hits(ids, scores)")
    return checked


def check_inside(ids: NDArray[np.int64], counts: NDArray[np.int64], size: int, owner: str) -> None:
    """Raise unless the ids of all hits number one of ``size`` entries of ``owner``, such as the nodes of a graph."""
    outside = (ids >= size) & (np.arange(ids.shape[1]) < counts[:, None])
    if outside.any():
        row, at = map(int, np.argwhere(outside)[0])
        raise InputError(
            "unknown",
            f"hits[{row}]",
            "{field} has the id {given}; {owner} are {allowed}",
            given=int(ids[row, at]),
            owner=owner,
            allowed=f"0 .. {size - 1}",
        )


def check_device_dtype(array: Any, field: str, dtype: Any = np.float32) -> None:
    """Raise unless an array on a device, where nothing is converted, has the dtype that kernels read."""
    if array.dtype != dtype:
        raise InputError(
            "dtype",
            field,
            "{field} on a device has the dtype {given}; it must be {allowed}: convert it there",
            given=array.dtype,
            allowed=np.dtype(dtype),
        )


def device_list(device: DeviceOps, hits: Hits, name: str) -> tuple[Any, Any, Any]:
    """Return ids, scores and counts as arrays of the device, without a copy."""
    wanted = {"ids": np.int64, "scores": np.float32, "counts": np.int64}
    arrays = []
    for part, dtype in wanted.items():
        arrays.append(device.adopt(getattr(hits, part), f"{name}.{part}"))
        check_device_dtype(arrays[-1], f"{name}.{part}", dtype)
    return arrays[0], arrays[1], arrays[2]


def host_list(hits: Hits) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return ids, scores and counts as contiguous NumPy arrays."""
    return (
        np.ascontiguousarray(to_numpy(hits.ids, "ids")),
        np.ascontiguousarray(to_numpy(hits.scores, "scores")),
        np.ascontiguousarray(to_numpy(hits.counts, "counts")),
    )
