"""The small protocol between the kernels' orchestration and what runs them: a GPU, or the SIMT emulator in tests.

Device arrays are the runtime's own objects. The orchestration uses no more of them than ``shape``, ``dtype``,
``nbytes``, ``size``, ``reshape``, ``view(dtype)``, a row ``[i]`` and rows ``[begin:end]``, all without a copy.
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
    """A launch, and the seconds that it took on the device."""

    kernel: str
    seconds: float


class Recording(Protocol):
    """Launches and copies recorded by :meth:`Runtime.capture`, with the memory that they use."""

    def replay(self) -> None:
        """Queue them all again, on the caller's current stream."""
        ...


class Runtime(Protocol):
    """What the orchestration asks of a device. Work runs in the order of the calls; only downloads wait.

    An array that is dropped may be reused only by work queued later.
    """

    name: str

    @property
    def fixed(self) -> bool:
        """Say whether this thread is inside :meth:`capture`: nothing may be read back to choose by."""
        ...

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return memory with unspecified content. BackendError where the device has no room."""
        ...

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return memory with every byte 0; no kernel is launched for it."""
        ...

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """Return a copy on the device of a C-contiguous array, which has been read when the call returns.

        Inside :meth:`capture` a constant of the recording: it is copied once, and replays read it again.
        """
        ...

    def download(self, array: DeviceArray) -> NDArray[Any]:
        """Return a copy on the host of a device array."""
        ...

    def copy(self, target: Any, source: Any) -> None:
        """Copy all bytes between arrays of one size, C-contiguous, each on the device or the host.

        A copy to the host waits; a copy from :meth:`pinned` memory does not, so that memory must stay as it is until a
        later download.
        """
        ...

    def pinned(self, nbytes: int) -> NDArray[np.uint8]:
        """Return host memory that copies to and from the device without staging."""
        ...

    def launch(self, kernel: str, grid: int, block: int, arguments: Sequence[Any], shared: int = 0) -> None:
        """Run a kernel of ``kernels/cuda``: ``grid`` blocks of ``block`` threads.

        ``shared`` is the bytes of dynamic shared memory; ``arguments`` are device arrays, None for a null pointer,
        NumPy scalars of exactly the parameters' types, and :class:`.arguments.Arguments` for structs.
        """
        ...

    def timed(self) -> AbstractContextManager[list[LaunchTime]]:
        """Time this thread's launches, on the device's clock; the list has them once the context has ended.

        What is recorded is not timed, nor what a recording replays.
        """
        ...

    def matmul(self, a: DeviceArray, b: DeviceArray, out: DeviceArray) -> None:
        """Compute out = a bᵀ in float32, row-major: a (m, d), b (n, d), out (m, n), all float32.

        The order of the sums is the library's own: what it gives is a candidate score, not a final one. No narrower
        arithmetic such as TF32.
        """
        ...

    def recording_memory(self) -> RecordingMemory:
        """Return memory that recordings may share: such as are never replayed at the same time."""
        ...

    def capture(self, work: Callable[[], T], memory: RecordingMemory | None = None) -> tuple[Recording, T]:
        """Record what ``work`` queues, to replay it; what it returned (device arrays) is where replays write.

        ``work`` runs twice: once for real, which makes the memory and the constants, and once recorded, in which
        nothing is allocated, uploaded or waited for. Both times it must ask for the same in the same order. Without
        ``memory`` the recording has its own; it is freed with the recording and the arrays that were returned.
        """
        ...

    def side_by_side(self, arrays: Sequence[DeviceArray], begins: Sequence[int], nbytes: int) -> DeviceArray:
        """Return a block of so many bytes with arrays that the work of :meth:`capture` returns, at these places.

        Kernels of a recording write there at once if the work has asked for the whole array; others are copied.
        """
        ...

    def resident(self) -> AbstractContextManager[None]:
        """Let uploads and memory outlive any recording: graphs and corpora, made in the run before one."""
        ...

    def is_device_array(self, array: Any) -> bool:
        """Say whether a caller's array is in a device's memory (``__cuda_array_interface__``, or DLPack's device)."""
        ...

    def adopt(self, array: Any) -> DeviceArray:
        """Return a caller's array on this device, C-contiguous, without a copy. InputError if it is neither."""
        ...

    def export(self, array: DeviceArray, like: Any) -> Any:
        """Return a device array for the caller, without a copy: of the library that ``like`` came from."""
        ...

    def on_stream_of(self, array: Any) -> AbstractContextManager[None]:
        """Queue work on the stream that the caller's library uses for ``array``; None: the current one."""
        ...

    def free_bytes(self) -> int:
        """Return the bytes that :meth:`empty` can still give."""
        ...

    def trim(self) -> None:
        """Give memory that nothing uses back to the device."""
        ...

    def explain(self) -> dict[str, Any]:
        """Return device, driver and where the kernels came from."""
        ...


class Constants:
    """What a captured work uploads: made in the run before the recording, given out again in the recording."""

    def __init__(self) -> None:
        self._made: list[tuple[NDArray[Any], DeviceArray]] = []
        self._next: int | None = None

    def record(self) -> None:
        """Make nothing from here on."""
        self._next = 0

    def upload(self, array: NDArray[Any], make: Callable[[NDArray[Any]], DeviceArray]) -> DeviceArray:
        if self._next is None:
            self._made.append((array.copy(), make(array)))
            return self._made[-1][1]
        if self._next >= len(self._made):
            raise RuntimeError("a captured work uploads more in its recording than in the run before it")
        before, on_device = self._made[self._next]
        if before.dtype != array.dtype or before.shape != array.shape or before.tobytes() != array.tobytes():
            raise RuntimeError("a captured work uploads other values in its recording than in the run before it")
        self._next += 1
        return on_device


def blocks(items: int, per_block: int) -> int:
    """Return the blocks that cover ``items``, at least one."""
    return max(1, -(-items // per_block))


def take_rows(runtime: Runtime, array: DeviceArray, rows: Iterable[int]) -> DeviceArray:
    """Return a new array of these rows by copies, in their order; a row may come more than once."""
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
