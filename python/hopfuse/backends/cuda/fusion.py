"""Calibration and fusion on a device: lists are concatenated, then fused in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..calls import CalibrateCall, FuseCall, HitArrays, KernelOptions, ScoredList
from .arguments import (
    CALIBRATION,
    FINISH_SCORE,
    FLAT_LISTS,
    FUSE,
    FUSION_OPTIONS,
    LIST_VALUES,
    Arguments,
    ArgumentStruct,
)
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
        _, (option,) = _uploaded(runtime, [], [call.option])
        rule = _calibration(call.method, call.ties, option)
        arguments = [np.int64(batch), np.int64(width), scores, call.counts, rule, out]
        runtime.launch("calibrate_f32", blocks(batch, _LISTS_PER_BLOCK), _LISTS_PER_BLOCK * _WARP, arguments)
    return out


def empty_hits(runtime: Runtime, batch: int, k: int) -> HitArrays:
    """Allocate hits, uninitialised."""
    hits = (batch, k)
    ids, scores, counts = runtime.empty_all([(hits, np.int64), (hits, np.float32), ((batch,), np.int64)])
    return {"ids": ids, "scores": scores, "counts": counts}


def no_hits(runtime: Runtime, batch: int, k: int) -> HitArrays:
    """Return empty lists for a batch."""
    arrays = np.full((batch, k), -1, np.int64), np.full((batch, k), -np.inf, np.float32), np.zeros(batch, np.int64)
    return dict(zip(("ids", "scores", "counts"), runtime.upload_all(arrays), strict=True))


def fuse(runtime: Runtime, call: FuseCall) -> HitArrays:
    """Return ids, scores and counts of the k best fused documents of each query."""
    lists, k, weights, prior = call.lists, call.k, call.weights, call.prior
    batch = int(lists[0][0].shape[0])
    starts = np.cumsum([0, *(int(ids.shape[1]) for ids, _, _ in lists)], dtype=np.int64)
    entries = int(starts[-1])
    if not (batch and k and entries):
        return no_hits(runtime, batch, k)
    arrays: list[NDArray[Any]] = [starts, call.pools, prior if prior.size else np.ones(1, np.float32), weights]
    arrays += [] if call.on_device else _joined(lists)
    there, (option, calibration) = _uploaded(runtime, arrays, [call.option, call.calibration_option])
    starts_there, pools, factors, weights_there, *joined = there
    ids, scores, counts = joined or (lists[0] if len(lists) == 1 else _flat(runtime, lists, starts))
    hits = empty_hits(runtime, batch, k)
    rule = _calibration(call.calibration, call.ties, calibration)
    size, at_once, room = _sorting(runtime, batch, entries)
    arguments = FUSE(
        lists=FLAT_LISTS(batch=batch, lists=len(lists), starts=starts_there, counts=counts, pools=pools), ids=ids,
        values=LIST_VALUES(scores=scores, calibration=rule, values=runtime.empty(batch * entries, np.float32)),
        method=_METHODS[call.method], option=_filled(FUSION_OPTIONS, option), weights=weights_there,
        weight_step=0 if weights.ndim == 1 else len(lists),
        finish=FINISH_SCORE(consensus=call.consensus, prior=factors, priors=prior.size), k=k, out_ids=hits["ids"],
        out_scores=hits["scores"], out_counts=hits["counts"], size=size, room=room,
    )  # fmt: skip
    shared = _ENTRY_BYTES * (size if room is None else 1)  # the kernel declares shared memory in either case
    runtime.launch("fuse_f32", at_once, min(_MAX_THREADS, max(_WARP, size // 2)), [arguments], shared=shared)
    return hits


def _joined(lists: Sequence[ScoredList]) -> list[NDArray[Any]]:
    """Return the ids, scores and counts of all lists on the host, each list after the one before it."""
    return [np.concatenate([array.reshape(-1) for array in arrays]) for arrays in zip(*lists, strict=True)]


def _uploaded(
    runtime: Runtime, arrays: Sequence[NDArray[Any]], options: Sequence[KernelOptions]
) -> tuple[list[DeviceArray], list[dict[str, Any]]]:
    """Upload arrays, and those among the options of kernels, at once."""
    among: list[NDArray[Any]] = []
    for option in options:
        among += [value for value in option.values() if isinstance(value, np.ndarray)]
    there = runtime.upload_all([*arrays, *among])
    rest = iter(there[len(arrays) :])
    filled = [
        {name: next(rest) if isinstance(value, np.ndarray) else value for name, value in option.items()}
        for option in options
    ]
    return there[: len(arrays)], filled


def _filled(struct: ArgumentStruct, option: dict[str, Any], **more: Any) -> Arguments:
    """Return a struct with these fields, and 0 or null in the others."""
    return struct(**{field: None if "*" in str(kind) else 0 for field, kind in struct.fields.items()} | option | more)


def _calibration(method: str, ties: str, option: dict[str, Any]) -> Arguments:
    return _filled(CALIBRATION, option, method=_CALIBRATIONS[method], ties=_TIES[ties])


def _sorting(runtime: Runtime, batch: int, entries: int) -> tuple[int, int, DeviceArray | None]:
    """Return the entries that a block sorts, the number of blocks, and their memory; None: it is shared memory."""
    size = 1 << (entries - 1).bit_length()
    if size <= SHARED_ENTRIES:
        return size, batch, None
    at_once = min(batch, max(1, WORKSPACE_BYTES // (_ENTRY_BYTES * size)))
    return size, at_once, runtime.empty(at_once * _ENTRY_BYTES * size, np.uint8)


def _flat(runtime: Runtime, lists: Sequence[ScoredList], starts: NDArray[np.int64]) -> list[DeviceArray]:
    """Concatenate the ids, scores and counts of all lists on the device, with one launch per list."""
    batch = int(lists[0][0].shape[0])
    entries = batch * int(starts[-1])
    flat = runtime.empty_all([((entries,), np.int64), ((entries,), np.float32), ((len(lists) * batch,), np.int64)])
    for number, (ids, scores, counts) in enumerate(lists):
        width = int(ids.shape[1])
        given = [ids, scores] if width else [None, None]
        place = [np.int64(batch), np.int64(width), np.int64(starts[number]), np.int64(number)]
        runtime.launch(
            "fuse_list", blocks(batch * max(1, width), _MAX_THREADS), _MAX_THREADS, [*place, *given, counts, *flat]
        )
    return flat
