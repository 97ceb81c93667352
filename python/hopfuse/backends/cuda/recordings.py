"""A core's recordings by batch size: batches of any size, and the queries that a recording leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types.results import take_apart
from .device_ops import DeviceOps, raise_fault
from .recorded import RecordedCore
from .rows import put_rows, take_rows
from .runtime import DeviceArray


class Recordings:
    """``shapes`` are of one query; ``sizes`` the batch sizes to record for, ascending. Calls must not overlap."""

    def __init__(
        self,
        device: DeviceOps,
        core: Callable[..., Any],
        shapes: Sequence[tuple[tuple[int, ...], Any]],
        sizes: Sequence[int],
    ) -> None:
        self.device, self._core, self._shapes, self._sizes = device, core, list(shapes), tuple(sizes)
        self._made: dict[int, RecordedCore] = {}

    def recorded(self, batch: int) -> RecordedCore:
        """The recording that a batch of this size uses."""
        size = next((size for size in self._sizes if size >= batch), self._sizes[-1])
        if size not in self._made:
            inputs = [((size, *shape), dtype) for shape, dtype in self._shapes]
            self._made[size] = RecordedCore(self.device, self._core, inputs)
        return self._made[size]

    def on_host(self, arrays: Sequence[NDArray[Any]]) -> Any:
        """The core's result for NumPy arrays, of NumPy arrays."""
        batch, parts = arrays[0].shape[0], []
        recorded = self.recorded(batch)
        size = recorded.inputs.slots[0].shape[0]
        for begin in range(0, batch, size):
            rows = np.minimum(np.arange(begin, begin + size), batch - 1)  # padded by the last query
            given = [array[rows] for array in arrays]
            leaves, status = recorded.on_host(given)
            left = self._left(status[: batch - begin], begin)
            if left.size:
                again = self._again([self.device.runtime.upload(array[left]) for array in given])
                for leaf, found in zip(leaves, again, strict=True):
                    leaf[left] = self.device.runtime.download(found)
            parts.append([leaf[: batch - begin] for leaf in leaves])
        joined = [np.concatenate(leaf) if len(parts) > 1 else leaf[0] for leaf in zip(*parts, strict=True)]
        return recorded.rebuild(joined)

    def on_device(self, arrays: Sequence[DeviceArray], like: Any) -> Any:
        """The same for arrays on the device, of arrays there."""
        runtime, batch = self.device.runtime, int(arrays[0].shape[0])
        if not batch:
            return self._core(*(runtime.export(array, like) for array in arrays))
        recorded = self.recorded(batch)
        size = recorded.inputs.slots[0].shape[0]
        joined: list[DeviceArray] = []
        for begin in range(0, batch, size):
            given = [self._padded(array[begin : begin + size], size) for array in arrays]
            leaves, status = recorded.on_device(given)
            left = self._left(status[: batch - begin], begin)
            if left.size:
                again = self._again([take_rows(runtime, array, left.tolist()) for array in given])
                for leaf, found in zip(leaves, again, strict=True):
                    put_rows(runtime, leaf, left.tolist(), found)
            if not joined:
                joined = [runtime.empty((batch, *leaf.shape[1:]), leaf.dtype) for leaf in leaves]
            for whole, leaf in zip(joined, leaves, strict=True):
                part = leaf[: batch - begin]
                if part.nbytes:
                    runtime.copy(whole[begin : begin + size], part)
        return recorded.rebuild([runtime.export(leaf, like) for leaf in joined])

    def _left(self, status: NDArray[np.int32], begin: int) -> NDArray[np.int64]:
        """The queries of a part that must be asked again; the error of one that is wrong."""
        raise_fault(status, begin)
        left = np.flatnonzero(status == 0)
        counts = self.device.last.setdefault("capture", {"replays": 0, "queries_asked_again": 0})
        counts["replays"] += 1
        counts["queries_asked_again"] += int(left.size)
        return left

    def _again(self, arrays: list[DeviceArray]) -> list[DeviceArray]:
        runtime = self.device.runtime
        leaves, _ = take_apart(self._core(*(runtime.export(array, None) for array in arrays)))
        return [runtime.adopt(leaf) for leaf in leaves]

    def _padded(self, array: DeviceArray, size: int) -> DeviceArray:
        """The array, with its last row again until there are ``size``."""
        count = int(array.shape[0])
        if count == size:
            return array
        runtime = self.device.runtime
        padded = runtime.empty((size, *array.shape[1:]), array.dtype)
        if array.nbytes:
            runtime.copy(padded[:count], array)
        for row in range(count, size):
            put_rows(runtime, padded, [row], array[count - 1 :])
        return padded
