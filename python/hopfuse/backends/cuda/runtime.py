"""The protocol between the device ops and the runtime that executes kernels: a GPU, or the SIMT emulator in tests.

Device arrays are the runtime's own objects. Ops use only ``shape``, ``dtype``, ``nbytes``, ``size``, ``reshape``,
``view(dtype)``, a row ``[i]`` and rows ``[begin:end]``, all without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .recording_memory import RecordingMemory

DeviceArray = Any
T = TypeVar("T")


class LaunchTime(NamedTuple):
    """A launch and its time on the device."""

    kernel: str
    seconds: float


class Recording(Protocol):
    """Launches and copies recorded by :meth:`Runtime.capture`, and their memory."""

    def replay(self) -> None:
        """Queue the recorded work on the caller's current stream."""
        ...


class Runtime(Protocol):
    """The operations of a device. Work runs in the order of the calls; only copies to the host wait for it.

    The memory of a dropped array may be reused only by work queued later.
    """

    name: str
    #: Whether the device can run all blocks of a launch at once. The self-test clears it if that gives other results.
    cooperative: bool

    @property
    def fixed(self) -> bool:
        """Whether this thread is inside :meth:`capture`, where results cannot be read to make decisions."""
        ...

    @property
    def l2_bytes(self) -> int:
        """The size of the L2 cache; 0 if there is none."""
        ...

    @property
    def l2_speedup(self) -> float:
        """The bandwidth of the L2 cache over that of the memory; at least 1."""
        ...

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Allocate uninitialised memory; raise BackendError if the device is out of memory."""
        ...

    def empty_all(self, arrays: Sequence[tuple[tuple[int, ...], DTypeLike]]) -> list[DeviceArray]:
        """Allocate arrays of these shapes and dtypes; outside :meth:`capture`, in one block."""
        ...

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Allocate memory filled with zero bytes, without launching a kernel."""
        ...

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """Copy a C-contiguous array to the device; the array has been read when the call returns.

        Inside :meth:`capture` the copy is a constant of the recording: it is made once, and replays read it.
        """
        ...

    def upload_all(self, arrays: Sequence[NDArray[Any]]) -> list[DeviceArray]:
        """Upload arrays; small ones in one copy, without waiting for it."""
        ...

    def download(self, array: DeviceArray) -> NDArray[Any]:
        """Copy a device array to the host."""
        ...

    def download_all(self, arrays: Sequence[DeviceArray]) -> list[NDArray[Any]]:
        """Copy device arrays to the host; those of one :meth:`empty_all`, if next to each other, in one copy."""
        ...

    def copy(self, target: Any, source: Any) -> None:
        """Copy all bytes between C-contiguous arrays of equal size, each on the device or the host.

        A copy to the host waits. A copy from :meth:`pinned` memory does not; that memory must not change until a later
        download.
        """
        ...

    def pinned(self, nbytes: int) -> NDArray[np.uint8]:
        """Allocate pinned host memory."""
        ...

    def launch(
        self,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[Any],
        shared: int = 0,
        *,
        cooperative: bool = False,
    ) -> None:
        """Run a kernel of ``kernels/cuda``: ``grid`` blocks of ``block`` threads.

        ``shared`` is the bytes of dynamic shared memory; ``arguments`` are device arrays, None for a null pointer,
        NumPy scalars of exactly the parameters' types, and :class:`.arguments.Arguments` for structs. With
        ``cooperative`` all blocks run at once and may wait for each other.
        """
        ...

    def resident_blocks(self, kernel: str, block: int, shared: int) -> int:
        """Return how many blocks of a kernel the device runs at once."""
        ...

    def timed(self) -> AbstractContextManager[list[LaunchTime]]:
        """Time this thread's launches on the device; the list is filled when the context ends.

        Launches that are recorded or replayed are not timed.
        """
        ...

    def matmul(self, a: DeviceArray, b: DeviceArray, out: DeviceArray) -> None:
        """Compute out = a bᵀ in float32, row-major: a (m, d), b (n, d), out (m, n), all float32.

        The order of the sums is unspecified, so results are candidate scores, not final ones. Narrower arithmetic such
        as TF32 is not permitted.
        """
        ...

    def recording_memory(self) -> RecordingMemory:
        """Return memory for recordings, which may share it if they are never replayed at the same time."""
        ...

    def capture(self, work: Callable[[], T], memory: RecordingMemory | None = None) -> tuple[Recording, T]:
        """Record the work that ``work`` queues; replays write to the device arrays that it returned.

        ``work`` runs twice: first normally, which allocates memory and constants, and then recorded, without
        allocating, uploading or waiting. Both runs must make the same requests in the same order. Without ``memory``
        the recording has its own, which is freed with the recording and the returned arrays.
        """
        ...

    def side_by_side(self, arrays: Sequence[DeviceArray], begins: Sequence[int], nbytes: int) -> DeviceArray:
        """Return a block of ``nbytes`` that holds results of the work of :meth:`capture` at the offsets ``begins``.

        Kernels of a recording write directly to it if the work allocated the array as a whole; other arrays are copied.
        """
        ...

    def resident(self) -> AbstractContextManager[None]:
        """Allocate and upload outside any recording, for graphs and corpora; only in the run before a recording."""
        ...

    def is_device_array(self, array: Any) -> bool:
        """Return whether a caller's array is in device memory (by ``__cuda_array_interface__`` or DLPack)."""
        ...

    def adopt(self, array: Any) -> DeviceArray:
        """Return a caller's array without a copy; raise InputError if it is not on this device or not C-contiguous."""
        ...

    def export(self, array: DeviceArray, like: Any) -> Any:
        """Return a device array without a copy, in the library of ``like``."""
        ...

    def on_stream_of(self, array: Any) -> AbstractContextManager[None]:
        """Queue work on the stream that the caller's library uses for ``array``; if None, on the current stream."""
        ...

    def free_bytes(self) -> int:
        """Return the number of bytes that :meth:`empty` can still allocate."""
        ...

    def trim(self) -> None:
        """Release unused cached memory to the device."""
        ...

    def explain(self) -> dict[str, Any]:
        """Describe the device, the driver and the origin of the kernels."""
        ...


class Constants:
    """Arrays that captured work uploads: copied in the run before the recording, reused in the recording."""

    def __init__(self) -> None:
        self._made: list[tuple[NDArray[Any], DeviceArray]] = []
        self._next: int | None = None

    def record(self) -> None:
        """Start the recording, which uploads nothing."""
        self._next = 0

    def upload(self, array: NDArray[Any], make: Callable[[NDArray[Any]], DeviceArray]) -> DeviceArray:
        if self._next is None:
            self._made.append((array.copy(), make(array)))
            return self._made[-1][1]
        if self._next >= len(self._made):
            raise RuntimeError("the captured work uploads more in its recording than in the run before it")
        before, on_device = self._made[self._next]
        if before.dtype != array.dtype or before.shape != array.shape or before.tobytes() != array.tobytes():
            raise RuntimeError("the captured work uploads other values in its recording than in the run before it")
        self._next += 1
        return on_device


def blocks(items: int, per_block: int) -> int:
    """Return the number of blocks that cover ``items``, at least one."""
    return max(1, -(-items // per_block))


def take_rows(runtime: Runtime, array: DeviceArray, rows: Iterable[int]) -> DeviceArray:
    """Copy these rows, which may repeat, to a new array."""
    chosen = list(rows)
    taken = runtime.empty((len(chosen), *array.shape[1:]), array.dtype)
    for to, row in enumerate(chosen):
        _copy_row(runtime, taken, to, array, row)
    return taken


def put_rows(runtime: Runtime, target: DeviceArray, rows: Iterable[int], source: DeviceArray) -> None:
    """Copy row i of ``source`` to row ``rows[i]`` of ``target``."""
    for at, row in enumerate(rows):
        _copy_row(runtime, target, row, source, at)


def _copy_row(runtime: Runtime, target: DeviceArray, to: int, source: DeviceArray, at: int) -> None:
    row = source[at : at + 1]
    if row.nbytes:
        runtime.copy(target[to : to + 1], row)
