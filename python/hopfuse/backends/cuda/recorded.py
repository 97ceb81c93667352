"""A core of ops recorded for one batch size: one copy up, one replay, one copy down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types.results import Rebuild, check_leaves, take_apart
from .device_ops import DeviceOps
from .runtime import DeviceArray

_ALIGN = 256


class Slot(NamedTuple):
    """An array's place in a block of bytes."""

    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def view(self, block: Any) -> Any:
        return block[self.begin : self.begin + self.nbytes].view(self.dtype).reshape(self.shape)


class Layout:
    """Arrays one after the other in a block, each aligned."""

    def __init__(self, arrays: Sequence[tuple[tuple[int, ...], Any]]) -> None:
        self.slots: list[Slot] = []
        self.nbytes = 0
        for shape, dtype in arrays:
            self.slots.append(Slot(self.nbytes, tuple(shape), np.dtype(dtype)))
            self.nbytes += -(-self.slots[-1].nbytes // _ALIGN) * _ALIGN

    def views(self, block: Any) -> list[Any]:
        return [slot.view(block) for slot in self.slots]


class RecordedCore:
    """``core`` on a device for one shape of its inputs. Calls must not overlap.

    Parameters
    ----------
    core : callable
        Takes the inputs as arrays on the device, calls ops, returns Hits or arrays, or tuples or dicts of them.
    inputs : sequence of (shape, dtype)
        Shapes begin with the batch size.
    """

    def __init__(self, device: DeviceOps, core: Callable[..., Any], inputs: Sequence[tuple[tuple[int, ...], Any]]):
        runtime = device.runtime
        self.device, self.runtime, self._core = device, runtime, core
        self.inputs = Layout(inputs)
        self._above = runtime.empty(max(1, self.inputs.nbytes), np.uint8)
        self._staged = runtime.pinned(max(1, self.inputs.nbytes))
        for view in self.inputs.views(self._staged):
            view[...] = 1 if view.dtype.kind == "f" else 0  # something to compute with while it is recorded
        runtime.copy(self._above, self._staged)
        self._recording, made = runtime.capture(self._work)
        self.outputs, self._below, self._rebuild = made
        self._received = runtime.pinned(self._below.nbytes)

    def _work(self) -> tuple[Layout, DeviceArray, Rebuild]:
        runtime = self.runtime
        given = [runtime.export(view, None) for view in self.inputs.views(self._above)]
        with self.device.watching() as (statuses, self._residents):
            leaves, rebuild = take_apart(self._core(*given))
        check_leaves(leaves, self.inputs.slots[0].shape[0])
        arrays = [*(runtime.adopt(leaf) for leaf in leaves), *statuses]
        layout = Layout([(tuple(array.shape), array.dtype) for array in arrays])
        below = runtime.empty(max(1, layout.nbytes), np.uint8)
        for view, array in zip(layout.views(below), arrays, strict=True):
            if array.nbytes:
                runtime.copy(view, array)
        self._num_statuses = len(statuses)
        return layout, below, rebuild

    def on_host(self, arrays: Sequence[NDArray[Any]]) -> tuple[list[NDArray[Any]], NDArray[np.int32]]:
        """The arrays of the result, and each query's status."""
        for view, array in zip(self.inputs.views(self._staged), arrays, strict=True):
            view[...] = array
        self.runtime.copy(self._above, self._staged)
        self._recording.replay()
        self.runtime.copy(self._received, self._below)
        results = [view.copy() for view in self.outputs.views(self._received)]
        return self._split(results, np.asarray)

    def on_device(self, arrays: Sequence[DeviceArray]) -> tuple[list[DeviceArray], NDArray[np.int32]]:
        """The same for arrays on the device; only the statuses are read back."""
        for view, array in zip(self.inputs.views(self._above), arrays, strict=True):
            if array.nbytes:
                self.runtime.copy(view, array)
        self._recording.replay()
        below = self.runtime.empty(self._below.nbytes, np.uint8)  # the next replay writes where this one did
        self.runtime.copy(below, self._below)
        if not self._num_statuses:  # and may be queued on another stream: this one must be over
            self.runtime.download(below[:1])
        return self._split(self.outputs.views(below), self.runtime.download)

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """What the core returned, of other arrays."""
        return self._rebuild(iter(leaves))

    def _split(self, results: list[Any], read: Callable[[Any], NDArray[Any]]) -> tuple[list[Any], NDArray[np.int32]]:
        cut = len(results) - self._num_statuses
        statuses = [np.ones(self.inputs.slots[0].shape[0], np.int32), *(read(status) for status in results[cut:])]
        return results[:cut], _of_first_fault(np.stack(statuses))


def _of_first_fault(statuses: NDArray[np.int32]) -> NDArray[np.int32]:
    """Of each query what the first op says that found it wrong, as without a recording; else the least."""
    first = np.argmax(statuses < 0, axis=0)
    fault = np.take_along_axis(statuses, first[None], axis=0)[0]
    return np.asarray(np.where(fault < 0, fault, statuses.min(axis=0)))
