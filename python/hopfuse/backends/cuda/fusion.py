"""Calibration and fusion on a device: lists are concatenated, then fused in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..calls import CalibrateCall, FuseCall, HitArrays
from .runtime import DeviceArray, Runtime, blocks

_CALIBRATIONS, _TIES, _METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()

_ENTRY_BYTES = 16
_LISTS_PER_BLOCK = 4  # a warp each
_WARP, _MAX_THREADS = 32, 256
#: The most entries of a query that are sorted in shared memory (32 KiB).
SHARED_ENTRIES = 2048
#: The most global memory for sorting longer lists, in all blocks together, unless one block needs more.
WORKSPACE_BYTES = 256 * 2**20


def calibrate(runtime: Runtime, call: CalibrateCall) -> DeviceArray:
    """Return calibrated scores, (B, k)."""
    scores = call.scores
    out = runtime.empty(scores.shape, np.float32)
    batch, width = scores.shape
    if batch and width:
        kind = [np.int32(_CALIBRATIONS[call.method]), np.int32(_TIES[call.ties]), runtime.upload(call.option)]
        arguments = [np.int64(batch), np.int64(width), scores, call.counts, *kind, out]
        runtime.launch("calibrate_f32", blocks(batch, _LISTS_PER_BLOCK), _LISTS_PER_BLOCK * _WARP, arguments)
    return out


def empty_hits(runtime: Runtime, batch: int, k: int) -> HitArrays:
    """Allocate hits, uninitialised."""
    return {
        "ids": runtime.empty((batch, k), np.int64),
        "scores": runtime.empty((batch, k), np.float32),
        "counts": runtime.empty(batch, np.int64),
    }


def no_hits(runtime: Runtime, batch: int, k: int) -> HitArrays:
    """Return empty lists for a batch."""
    return {
        "ids": runtime.upload(np.full((batch, k), -1, np.int64)),
        "scores": runtime.upload(np.full((batch, k), -np.inf, np.float32)),
        "counts": runtime.zeros(batch, np.int64),
    }


def fuse(runtime: Runtime, call: FuseCall) -> HitArrays:
    """Return ids, scores and counts of the k best fused documents of each query."""
    lists, k, weights, prior = call.lists, call.k, call.weights, call.prior
    batch = int(lists[0][0].shape[0])
    starts = np.cumsum([0, *(int(ids.shape[1]) for ids, _, _ in lists)], dtype=np.int64)
    entries = int(starts[-1])
    if not (batch and k and entries):
        return no_hits(runtime, batch, k)
    hits = empty_hits(runtime, batch, k)
    ids, scores, counts = lists[0] if len(lists) == 1 else _flat(runtime, lists, starts)
    upload = runtime.upload
    flat = [np.int64(batch), np.int32(len(lists)), upload(starts), counts, upload(call.pools), ids, scores]
    scale = [np.int32(_CALIBRATIONS[call.calibration]), np.int32(_TIES[call.ties]), upload(call.calibration_option)]
    rule = [runtime.empty(batch * entries, np.float32), np.int32(_METHODS[call.method]), upload(call.option)]
    weighting = [upload(weights), np.int64(0 if weights.ndim == 1 else len(lists))]
    finish = [np.float32(call.consensus), upload(prior if prior.size else np.ones(1, np.float32)), np.int64(prior.size)]
    arguments = [*flat, *scale, *rule, *weighting, *finish, np.int64(k), *hits.values()]
    _launch_queries(runtime, batch, entries, arguments)
    return hits


def _launch_queries(runtime: Runtime, batch: int, entries: int, arguments: list[Any]) -> None:
    """Launch one block per query, sorting in shared memory, or as many blocks as the workspace allows; same bits."""
    size = 1 << (entries - 1).bit_length()
    threads = min(_MAX_THREADS, max(_WARP, size // 2))
    if size <= SHARED_ENTRIES:
        runtime.launch("fuse_f32", batch, threads, [*arguments, np.int64(size), None], shared=_ENTRY_BYTES * size)
        return
    at_once = min(batch, max(1, WORKSPACE_BYTES // (_ENTRY_BYTES * size)))
    room = runtime.empty(at_once * _ENTRY_BYTES * size, np.uint8)
    unused = _ENTRY_BYTES  # the kernel declares shared memory in either case
    runtime.launch("fuse_f32", at_once, threads, [*arguments, np.int64(size), room], shared=unused)


def _flat(
    runtime: Runtime, lists: Sequence[tuple[DeviceArray, DeviceArray, DeviceArray]], starts: NDArray[np.int64]
) -> list[DeviceArray]:
    """Concatenate the ids, scores and counts of all lists, with one launch per list."""
    batch = int(lists[0][0].shape[0])
    entries = batch * int(starts[-1])
    flat = [runtime.empty(entries, np.int64), runtime.empty(entries, np.float32)]
    flat.append(runtime.empty(len(lists) * batch, np.int64))
    for number, (ids, scores, counts) in enumerate(lists):
        width = int(ids.shape[1])
        given = [ids, scores] if width else [None, None]
        place = [np.int64(batch), np.int64(width), np.int64(starts[number]), np.int64(number)]
        runtime.launch(
            "fuse_list", blocks(batch * max(1, width), _MAX_THREADS), _MAX_THREADS, [*place, *given, counts, *flat]
        )
    return flat
