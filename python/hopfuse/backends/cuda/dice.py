"""Sørensen-Dice scores on a device, where labels are resident; one launch for all candidates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...types import LabelSets
from ..calls import DiceCall
from .residents import resident, upload_some
from .runtime import DeviceArray, Runtime, blocks

THREADS = 128


class Labels(NamedTuple):
    """Labels on a device."""

    runtime: Runtime  # kept alive so that its id is not reused
    indptr: DeviceArray
    members: DeviceArray


def device_labels(runtime: Runtime, labels: LabelSets) -> Labels:
    """Return the labels on the device; their first use uploads them."""

    def make() -> Labels:
        return Labels(runtime, runtime.upload(labels.indptr), upload_some(runtime, labels.members))

    return resident(runtime, labels, (labels.indptr, labels.members), "the label sets", make)


def dice(runtime: Runtime, call: DiceCall) -> DeviceArray:
    """Return scores, (Z,)."""
    count, parts = call.candidates.shape
    scores = runtime.empty(count, np.float32)
    if count:
        there, upload = device_labels(runtime, call.labels), runtime.upload
        queries = [upload(call.query_indptr), upload_some(runtime, call.query_units), np.int64(call.indptr.size - 1)]
        rows = [upload(call.indptr), upload(call.candidates), np.int32(parts), np.int64(count)]
        arguments: list[Any] = [there.indptr, there.members, *queries, *rows, scores]
        runtime.launch("dice_f32", blocks(count, THREADS), THREADS, arguments)
    return scores
