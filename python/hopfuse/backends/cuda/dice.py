"""Sørensen-Dice scores on a device: labels stay there, a launch over all candidates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types import LabelSets
from .residents import require, resident_key, upload_some
from .runtime import DeviceArray, Runtime, blocks

THREADS = 128


class Resident(NamedTuple):
    """Labels on a device."""

    runtime: Runtime  # held, so that no other runtime gets its id
    indptr: DeviceArray
    members: DeviceArray


def resident(runtime: Runtime, labels: LabelSets) -> Resident:
    """The labels where the runtime can read them, uploaded at their first use there."""
    key = resident_key(runtime)
    if key not in labels._prepared:
        require(runtime, labels.indptr.nbytes + labels.members.nbytes, "the label sets")
        with runtime.resident():
            labels._prepared[key] = Resident(
                runtime, runtime.upload(labels.indptr), upload_some(runtime, labels.members)
            )
    found: Resident = labels._prepared[key]
    return found


def dice(
    runtime: Runtime,
    labels: LabelSets,
    query_indptr: NDArray[np.int64],
    query_units: NDArray[np.int32],
    candidates: NDArray[np.int32],
    indptr: NDArray[np.int64],
) -> DeviceArray:
    """Scores, (Z,)."""
    count, parts = candidates.shape
    scores = runtime.empty(count, np.float32)
    if count:
        there = resident(runtime, labels)
        queries = [runtime.upload(query_indptr), upload_some(runtime, query_units), np.int64(indptr.size - 1)]
        rows = [runtime.upload(indptr), runtime.upload(candidates), np.int32(parts), np.int64(count)]
        arguments: list[Any] = [there.indptr, there.members, *queries, *rows, scores]
        runtime.launch("dice_f32", blocks(count, THREADS), THREADS, arguments)
    return scores
