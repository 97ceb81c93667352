"""Calibration and fusion on a device: the lists flat, then one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from .runtime import DeviceArray, Runtime, blocks

_CALIBRATIONS, _TIES, _METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()

_ENTRY_BYTES = 16
_LISTS_PER_BLOCK = 4  # a warp each
_WARP, _MOST_THREADS = 32, 256
#: Entries of a query that are sorted in shared memory: 32 KiB.
SHARED_ENTRIES = 2048
#: Where they are more: bytes of global memory for all blocks together, if one block needs no more.
WORKSPACE_BYTES = 256 * 2**20

#: ids (B, width) int64, scores (B, width) float32 and counts (B,) int64, on the device.
DeviceList = tuple[DeviceArray, DeviceArray, DeviceArray]


def calibrate(
    runtime: Runtime,
    scores: DeviceArray,
    counts: DeviceArray,
    *,
    method: str,
    ties: str,
    option: NDArray[np.float32],
) -> DeviceArray:
    """Calibrated scores, (B, k)."""
    out = runtime.empty(scores.shape, np.float32)
    batch, width = scores.shape
    if batch and width:
        kind = [np.int32(_CALIBRATIONS[method]), np.int32(_TIES[ties]), runtime.upload(option)]
        arguments = [np.int64(batch), np.int64(width), scores, counts, *kind, out]
        runtime.launch("calibrate_f32", blocks(batch, _LISTS_PER_BLOCK), _LISTS_PER_BLOCK * _WARP, arguments)
    return out


def fuse(
    runtime: Runtime,
    lists: list[DeviceList],
    *,
    method: str,
    calibration: str,
    ties: str,
    calibration_option: NDArray[np.float32],
    pools: NDArray[np.int64],
    option: NDArray[np.float32],
    weights: NDArray[np.float32],
    consensus: float,
    prior: NDArray[np.float32],
    k: int,
) -> dict[str, DeviceArray]:
    """ids, scores and counts of the k best documents of each query's union."""
    batch = int(lists[0][0].shape[0])
    starts = np.cumsum([0, *(int(ids.shape[1]) for ids, _, _ in lists)], dtype=np.int64)
    entries = int(starts[-1])
    if not (batch and k and entries):
        return {
            "ids": runtime.upload(np.full((batch, k), -1, np.int64)),
            "scores": runtime.upload(np.full((batch, k), -np.inf, np.float32)),
            "counts": runtime.zeros(batch, np.int64),
        }
    hits = {
        "ids": runtime.empty((batch, k), np.int64),
        "scores": runtime.empty((batch, k), np.float32),
        "counts": runtime.empty(batch, np.int64),
    }
    ids, scores, counts = (_flat(runtime, [one[part] for one in lists]) for part in range(3))
    upload = runtime.upload
    flat = [np.int64(batch), np.int32(len(lists)), upload(starts), counts, upload(pools), ids, scores]
    scale = [np.int32(_CALIBRATIONS[calibration]), np.int32(_TIES[ties]), upload(calibration_option)]
    rule = [runtime.empty(batch * entries, np.float32), np.int32(_METHODS[method]), upload(option)]
    weighting = [upload(weights), np.int64(0 if weights.ndim == 1 else len(lists))]
    finish = [np.float32(consensus), upload(prior if prior.size else np.ones(1, np.float32)), np.int64(prior.size)]
    arguments = [*flat, *scale, *rule, *weighting, *finish, np.int64(k), *hits.values()]
    _launch_queries(runtime, batch, entries, arguments)
    return hits


def _launch_queries(runtime: Runtime, batch: int, entries: int, arguments: list[Any]) -> None:
    """A block per query in shared memory, or as many blocks as the workspace has room for; the bits are the same."""
    size = 1 << (entries - 1).bit_length()
    threads = min(_MOST_THREADS, max(_WARP, size // 2))
    if size <= SHARED_ENTRIES:
        runtime.launch("fuse_shared_f32", batch, threads, [*arguments, np.int32(size)], shared=_ENTRY_BYTES * size)
        return
    at_once = min(batch, max(1, WORKSPACE_BYTES // (_ENTRY_BYTES * size)))
    room = runtime.empty(at_once * _ENTRY_BYTES * size, np.uint8)
    runtime.launch("fuse_global_f32", at_once, threads, [*arguments, np.int64(size), room])


def _flat(runtime: Runtime, arrays: list[DeviceArray]) -> DeviceArray:
    """One array after the other."""
    if len(arrays) == 1:
        return arrays[0]
    flat = runtime.empty(sum(array.size for array in arrays), arrays[0].dtype)
    at = 0
    for array in arrays:
        if array.size:
            runtime.copy(flat[at : at + array.size], array)
        at += array.size
    return flat
