"""The device that ops run on, what is resident there, and what it takes from and gives to their callers."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from numpy.typing import DTypeLike

from ... import _native
from ..._native import DeviceArray
from ...types import Corpus, Graph, Incidence, LabelSets
from ..driver import release
from . import device_errors as device_errors  # so that native code can raise its errors
from . import interop

#: What may have a copy on a device, which its ``derived`` keeps.
Held = Graph | Corpus | LabelSets | Incidence
R = TypeVar("R")

_serial = itertools.count()
_making = threading.RLock()


class LaunchTime(NamedTuple):
    """A launch and its time on the device."""

    kernel: str
    seconds: float


class Runtime:
    """A device of this process, for all threads.

    Parameters
    ----------
    device : Device
        A native device, which queues the work.
    name : str
        Of the backend, in descriptions of calls.
    """

    def __init__(self, device: _native.Device, name: str = "cuda") -> None:
        self.device, self.name = device, name
        #: The prefix of the keys of what is resident on this device, in this process alone.
        self.key = f"{name}:{os.getpid()}:{next(_serial)}"
        device.collect_with(gc.collect)

    @property
    def is_capturing(self) -> bool:
        """Whether results of this thread's calls cannot be read to make decisions, as in a recording."""
        return self.device.recording

    @property
    def cooperative(self) -> bool:
        """Whether all blocks of a launch can run at once; the self-test clears it if that gives other results."""
        return self.device.cooperative

    @cooperative.setter
    def cooperative(self, may: bool) -> None:
        self.device.cooperative = may

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Allocate an array; raise BackendError if the device is out of memory."""
        return self.device.empty(shape, dtype)

    def is_device_array(self, array: Any) -> bool:
        """Return whether a caller's array is in device memory (by ``__cuda_array_interface__`` or DLPack)."""
        return interop.is_device_array(array)

    def holds(self, array: Any) -> bool:
        """Return whether an array is one of this runtime's own."""
        return isinstance(array, DeviceArray) and array.is_on(self.device)

    def adopt(self, array: Any) -> DeviceArray:
        """Return a caller's array without a copy; raise InputError if it is not on this device or not C-contiguous."""
        return interop.adopt(self.device, array)

    def export(self, array: DeviceArray, like: Any) -> Any:
        """Return a device array without a copy, in the library of ``like``."""
        return interop.export(array, like)

    def on_stream_of(self, array: Any) -> contextlib.AbstractContextManager[Any]:
        """Queue work of this thread on the stream that the caller's library uses for ``array``."""
        return interop.on_stream_of(self.device, array)

    def free_bytes(self) -> int:
        """Return the number of bytes that can still be allocated."""
        return self.device.free_bytes()

    def resident(self, held: Held, make: Callable[[_native.DeviceQueue], R], part: str = "") -> R:
        """Return the device copy of ``held``, or of a part of it; its first use makes it, in one thread."""
        key = self.key + part
        found: R | None = held.derived.get(key)
        if found is None:
            with _making:
                found = held.derived.get(key)
                if found is None:
                    found = held.derived[key] = make(self.device.queue())
        return found

    def release(self, held: Held | None = None) -> None:
        """Free the device copies of ``held``, but those that a recording reads, and unused cached memory."""
        if held is not None:
            with _making:
                for key in [key for key in list(held.derived) if key.startswith(self.key)]:
                    held.derived.pop(key, None)
        self.device.trim()

    @contextlib.contextmanager
    def timed(self) -> Iterator[list[LaunchTime]]:
        """Time this thread's launches on the device; the list is filled when the context ends.

        Launches that are recorded or replayed are not timed.
        """
        times: list[LaunchTime] = []
        self.device.start_timing()
        try:
            yield times
        finally:
            times.extend(LaunchTime(*one) for one in self.device.read_times())

    def explain(self) -> dict[str, Any]:
        """Describe the device, the driver and the origin of the kernels."""
        device = self.device
        return {
            "device": device.name,
            "uuid": device.uuid,
            "compute_capability": f"{device.capability / 10}",
            "driver": f"CUDA {release(device.driver_version)}",
            "total_bytes": device.total_bytes,
            "free_bytes": device.free_bytes(),
            "cooperative": device.cooperative,
            "kernels": dict(device.origins()),
        }
