"""Record a core of ops on a device, once per batch size, and replay it for batches of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core_results import Rebuild, check_leaves, flatten
from ..faults import raise_fault
from .device_ops import DeviceOps
from .layout import Layout
from .recording_memory import RecordingMemory
from .runtime import DeviceArray, put_rows, take_rows


class RecordedCore:
    """A recording of ``core`` for one shape of its inputs. Calls must not overlap.

    Parameters
    ----------
    core : callable
        Takes the inputs as arrays on the device, calls ops, and returns Hits or arrays, or tuples or dicts of them.
    inputs : sequence of (shape, dtype)
        Shapes include the batch size, first.
    memory : RecordingMemory
        May be shared with cores whose calls do not overlap with this one's.
    """

    def __init__(
        self,
        device: DeviceOps,
        core: Callable[..., Any],
        inputs: Sequence[tuple[tuple[int, ...], Any]],
        memory: RecordingMemory,
    ) -> None:
        runtime = device.runtime
        self.device, self.runtime, self._core = device, runtime, core
        self.inputs = Layout(inputs)
        self._above = runtime.empty(max(1, self.inputs.nbytes), np.uint8)
        self._staged = runtime.pinned(max(1, self.inputs.nbytes))
        for view in self.inputs.views(self._staged):
            view[...] = 1 if view.dtype.kind == "f" else 0  # valid inputs for the run before the recording
        runtime.copy(self._above, self._staged)
        self._recording, made = runtime.capture(self._work, memory)
        self.outputs, self._below, self._rebuild = made
        self._received = runtime.pinned(self._below.nbytes)

    def _work(self) -> tuple[Layout, DeviceArray, Rebuild]:
        runtime = self.runtime
        given = [runtime.export(view, None) for view in self.inputs.views(self._above)]
        with self.device.capture_log() as (statuses, self._residents):
            leaves, rebuild = flatten(self._core(*given))
        check_leaves(leaves, self.inputs.slots[0].shape[0])
        arrays = [*(runtime.adopt(leaf) for leaf in leaves), *statuses]
        layout = Layout([(tuple(array.shape), array.dtype) for array in arrays])
        below = runtime.side_by_side(arrays, [slot.begin for slot in layout.slots], max(1, layout.nbytes))
        self._num_statuses = len(statuses)
        return layout, below, rebuild

    def on_host(self, arrays: Sequence[NDArray[Any]]) -> tuple[list[NDArray[Any]], NDArray[np.int32]]:
        """Run on host arrays; return the arrays of the result and each query's status."""
        for view, array in zip(self.inputs.views(self._staged), arrays, strict=True):
            view[...] = array
        self.runtime.copy(self._above, self._staged)
        self._recording.replay()
        self.runtime.copy(self._received, self._below)
        results = [view.copy() for view in self.outputs.views(self._received)]
        return self._split(results, np.asarray)

    def on_device(self, arrays: Sequence[DeviceArray]) -> tuple[list[DeviceArray], NDArray[np.int32]]:
        """Run on device arrays; only the statuses are downloaded."""
        for view, array in zip(self.inputs.views(self._above), arrays, strict=True):
            if array.nbytes:
                self.runtime.copy(view, array)
        self._recording.replay()
        below = self.runtime.empty(self._below.nbytes, np.uint8)  # the next replay overwrites this one's results
        self.runtime.copy(below, self._below)
        if not self._num_statuses:  # wait, because the next replay may run on another stream
            self.runtime.download(below[:1])
        return self._split(self.outputs.views(below), self.runtime.download)

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """Rebuild the core's nested result from these arrays."""
        return self._rebuild(iter(leaves))

    def _split(self, results: list[Any], read: Callable[[Any], NDArray[Any]]) -> tuple[list[Any], NDArray[np.int32]]:
        cut = len(results) - self._num_statuses
        statuses = [np.ones(self.inputs.slots[0].shape[0], np.int32), *(read(status) for status in results[cut:])]
        return results[:cut], _of_first_fault(np.stack(statuses))


def _of_first_fault(statuses: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return per query the error of the first op that has one, as without a recording, else the lowest status."""
    first = np.argmax(statuses < 0, axis=0)
    fault = np.take_along_axis(statuses, first[None], axis=0)[0]
    return np.asarray(np.where(fault < 0, fault, statuses.min(axis=0)))


class Recordings:
    """Recordings of a core by batch size. Calls must not overlap.

    ``shapes`` are those of one query; ``sizes`` are the batch sizes of recordings, ascending.
    """

    def __init__(
        self,
        device: DeviceOps,
        core: Callable[..., Any],
        shapes: Sequence[tuple[tuple[int, ...], Any]],
        sizes: Sequence[int],
    ) -> None:
        self.device, self._core, self._shapes, self._sizes = device, core, list(shapes), tuple(sizes)
        self._made: dict[int, RecordedCore] = {}
        self._memory = device.runtime.recording_memory()  # shared: results are copied out before the next call

    def recorded(self, batch: int) -> RecordedCore:
        """Return the recording for a batch of this size, and make it if needed."""
        size = next((size for size in self._sizes if size >= batch), self._sizes[-1])
        if size not in self._made:
            inputs = [((size, *shape), dtype) for shape, dtype in self._shapes]
            self._made[size] = RecordedCore(self.device, self._core, inputs, self._memory)
        return self._made[size]

    def on_host(self, arrays: Sequence[NDArray[Any]]) -> Any:
        """Return the core's result for NumPy arrays, in NumPy arrays."""
        batch, parts = arrays[0].shape[0], []
        recorded = self.recorded(batch)
        size = recorded.inputs.slots[0].shape[0]
        for begin in range(0, batch, size):
            rows = np.minimum(np.arange(begin, begin + size), batch - 1)  # padded with the last query
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
        """Return the core's result for device arrays, in device arrays."""
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
        """Return the queries of a part that must be run again without the recording; raise the first query's error."""
        raise_fault(status, begin)
        left = np.flatnonzero(status == 0)
        counts = self.device.last.setdefault("capture", {"replays": 0, "queries_rerun": 0})
        counts["replays"] += 1
        counts["queries_rerun"] += int(left.size)
        return left

    def _again(self, arrays: list[DeviceArray]) -> list[DeviceArray]:
        runtime = self.device.runtime
        leaves, _ = flatten(self._core(*(runtime.export(array, None) for array in arrays)))
        return [runtime.adopt(leaf) for leaf in leaves]

    def _padded(self, array: DeviceArray, size: int) -> DeviceArray:
        """Pad an array to ``size`` rows by repeating its last row."""
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
