"""Calibration and fusion on a device: the lists flat, then one launch (calibrate) or two (fuse)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from .runtime import DeviceArray, Runtime, blocks

_CALIBRATIONS, _TIES = _native.calibrations(), _native.ties()

_ENTRY_BYTES = 16
_LISTS_PER_BLOCK = 4  # a warp each
_WARP, _MOST_THREADS = 32, 256
#: Entries of a query that are sorted in shared memory: 32 KiB.
SHARED_ENTRIES = 2048
#: Where they are more: bytes of global memory for all blocks together, if one block needs no more.
WORKSPACE_BYTES = 256 * 2**20

List = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]


def calibrate(
    runtime: Runtime, scores: NDArray[np.float32], counts: NDArray[np.int64], *, method: str, ties: str
) -> NDArray[np.float32]:
    """Calibrated scores, (B, k)."""
    if not scores.size:
        return np.empty_like(scores)
    batch, width = scores.shape
    out = runtime.empty(scores.shape, np.float32)
    arguments = [
        np.int64(batch),
        np.int64(width),
        runtime.upload(scores),
        runtime.upload(counts),
        np.int32(_CALIBRATIONS[method]),
        np.int32(_TIES[ties]),
        out,
    ]
    runtime.launch("calibrate_f32", blocks(batch, _LISTS_PER_BLOCK), _LISTS_PER_BLOCK * _WARP, arguments)
    return runtime.download(out)


def fuse(
    runtime: Runtime,
    lists: list[List],
    *,
    method: str,
    calibration: str,
    ties: str,
    option: NDArray[np.float32],
    weights: NDArray[np.float32],
    consensus: float,
    k: int,
) -> dict[str, Any]:
    """ids, scores and counts of the k best documents of each query's union."""
    batch = lists[0][0].shape[0]
    starts = np.cumsum([0, *(ids.shape[1] for ids, _, _ in lists)], dtype=np.int64)
    entries = int(starts[-1])
    if not (batch and k and entries):
        return {
            "ids": np.full((batch, k), -1, np.int64),
            "scores": np.full((batch, k), -np.inf, np.float32),
            "counts": np.zeros(batch, np.int64),
        }
    flat = [np.int64(batch), np.int32(len(lists)), runtime.upload(starts), _upload_flat(runtime, lists, 2)]
    options = runtime.upload(option)
    values = runtime.empty(batch * entries, np.float32)
    scales = [np.int32(_CALIBRATIONS[calibration]), np.int32(_TIES[ties])]
    runtime.launch(
        f"fuse_lists_{method}_f32",
        blocks(batch * len(lists), _LISTS_PER_BLOCK),
        _LISTS_PER_BLOCK * _WARP,
        [*flat, _upload_flat(runtime, lists, 1), *scales, options, values],
    )
    hits = {
        "ids": runtime.empty((batch, k), np.int64),
        "scores": runtime.empty((batch, k), np.float32),
        "counts": runtime.empty(batch, np.int64),
    }
    weighting = [runtime.upload(weights), np.int64(0 if weights.ndim == 1 else len(lists)), np.float32(consensus)]
    arguments = [*flat, _upload_flat(runtime, lists, 0), values, options, *weighting, np.int64(k), *hits.values()]
    _launch_queries(runtime, method, batch, entries, arguments)
    return {name: runtime.download(array) for name, array in hits.items()}


def _launch_queries(runtime: Runtime, method: str, batch: int, entries: int, arguments: list[Any]) -> None:
    """A block per query in shared memory, or as many blocks as the workspace has room for; the bits are the same."""
    size = 1 << (entries - 1).bit_length()
    threads = min(_MOST_THREADS, max(_WARP, size // 2))
    if size <= SHARED_ENTRIES:
        kernel, arguments = f"fuse_shared_{method}_f32", [*arguments, np.int32(size)]
        runtime.launch(kernel, batch, threads, arguments, shared=_ENTRY_BYTES * size)
        return
    at_once = min(batch, max(1, WORKSPACE_BYTES // (_ENTRY_BYTES * size)))
    room = runtime.empty(at_once * _ENTRY_BYTES * size, np.uint8)
    runtime.launch(f"fuse_global_{method}_f32", at_once, threads, [*arguments, np.int64(size), room])


def _upload_flat(runtime: Runtime, lists: list[List], part: int) -> DeviceArray:
    """The ids, scores or counts of all lists, one list after the other."""
    return runtime.upload(np.concatenate([one[part].ravel() for one in lists]))
