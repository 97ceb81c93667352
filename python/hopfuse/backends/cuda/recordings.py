"""Record a core of ops on a device, once per batch size, and replay it for batches of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..core_results import Rebuild, check_leaves, flatten
from .device_ops import DeviceOps
from .runtime import Runtime


class RecordedCore:
    """A recording of ``core`` for one shape of its inputs. Calls must not overlap.

    It runs once normally, and is then recorded when it is first replayed: for arrays of the host with the copies to and
    from the device, for arrays on the device without them.

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
        runtime: Runtime,
        core: Callable[..., Any],
        inputs: Sequence[tuple[tuple[int, ...], Any]],
        memory: _native.RecordingMemory,
    ) -> None:
        self._runtime, self._core = runtime, core
        self.native = _native.DeviceRecording(runtime.device, memory, inputs)
        self._rebuild = self._run(records=False, for_host=True)

    def recorded(self, *, for_host: bool) -> _native.DeviceRecording:
        """Return the recording for arrays of the host or of the device, and make it if needed."""
        if not self.native.is_recorded(for_host):
            if not self.native.has_run:  # the core raised in a run since
                self._rebuild = self._run(records=False, for_host=for_host)
            self._run(records=True, for_host=for_host)
        return self.native

    def _run(self, *, records: bool, for_host: bool) -> Rebuild:
        native = self.native
        given = native.begin(records, for_host)
        try:
            leaves, rebuild = flatten(self._core(*given))
            check_leaves(leaves, native.rows)
            native.end([self._runtime.adopt(leaf) for leaf in leaves])
        except BaseException:
            native.abandon()
            raise
        return rebuild

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """Rebuild the core's nested result from these arrays."""
        return self._rebuild(iter(leaves))


class Recordings:
    """Recordings of a core by batch size. Calls must not overlap.

    ``shapes`` describe one query; ``sizes`` are the batch sizes of recordings, ascending.
    """

    def __init__(
        self,
        device: DeviceOps,
        core: Callable[..., Any],
        shapes: Sequence[tuple[tuple[int, ...], Any]],
        sizes: Sequence[int],
    ) -> None:
        self._ops, self._core, self._shapes, self._sizes = device, core, list(shapes), tuple(sizes)
        self._made: dict[int, RecordedCore] = {}
        # Shared: results are copied out before the next call.
        self._memory = _native.RecordingMemory(device.runtime.device)

    def recorded(self, batch: int, *, for_host: bool = True) -> RecordedCore:
        """Return the recording for a batch of this size, and make it if needed."""
        size = next((size for size in self._sizes if size >= batch), self._sizes[-1])
        found = self._made.get(size)
        if found is None:
            inputs = [((size, *shape), dtype) for shape, dtype in self._shapes]
            found = self._made[size] = RecordedCore(self._ops.runtime, self._core, inputs, self._memory)
        found.recorded(for_host=for_host)
        return found

    def on_host(self, arrays: Sequence[NDArray[Any]]) -> Any:
        """Return the core's result for NumPy arrays, in NumPy arrays."""
        batch, given = arrays[0].shape[0], [np.ascontiguousarray(array) for array in arrays]
        recorded, leaves, left = self._replay(given, batch, for_host=True)
        if left:
            upload = self._ops.runtime.device.upload
            again = self._again([upload(array[left]) for array in given])
            for leaf, found in zip(leaves, again, strict=True):
                leaf[left] = found.to_numpy()
        self._count(recorded, batch, len(left))
        return recorded.rebuild(leaves)

    def on_device(self, arrays: Sequence[_native.DeviceArray], like: Any) -> Any:
        """Return the core's result for device arrays, in device arrays."""
        runtime, batch = self._ops.runtime, arrays[0].shape[0]
        if not batch:
            return self._core(*(runtime.export(array, like) for array in arrays))
        recorded, leaves, left = self._replay(arrays, batch, for_host=False)
        if left:
            again = self._again([_native.device_take_rows(runtime.device, array, left) for array in arrays])
            for leaf, found in zip(leaves, again, strict=True):
                _native.device_put_rows(runtime.device, leaf, left, found)
        self._count(recorded, batch, len(left))
        return recorded.rebuild([runtime.export(leaf, like) for leaf in leaves])

    def _replay(
        self, arrays: Sequence[Any], batch: int, *, for_host: bool
    ) -> tuple[RecordedCore, list[Any], list[int]]:
        """Return the recording, the arrays of its result, and the queries that it cannot prove.

        A recording whose blocks no longer run at once, because the device is shared with other processes, is replaced.
        """
        while True:
            recorded = self.recorded(batch, for_host=for_host)
            native = recorded.native
            answer = native.on_host(arrays, batch) if for_host else native.on_device(arrays, batch)
            if answer is not None:
                return recorded, *answer
            self._made = {size: made for size, made in self._made.items() if made is not recorded}

    def _again(self, arrays: list[_native.DeviceArray]) -> list[_native.DeviceArray]:
        """Run queries that the recording cannot prove without it."""
        leaves, _ = flatten(self._core(*arrays))
        return [self._ops.runtime.adopt(leaf) for leaf in leaves]

    def _count(self, recorded: RecordedCore, batch: int, left: int) -> None:
        counts = self._ops.last.setdefault("capture", {"replays": 0, "queries_rerun": 0})
        counts["replays"] += -(-batch // recorded.native.rows)
        counts["queries_rerun"] += left
