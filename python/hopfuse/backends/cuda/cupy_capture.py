"""Recording queued work as a CUDA graph: a stream, memory and constants of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import BackendError
from .cupy_errors import translated
from .runtime import Constants, DeviceArray

T = TypeVar("T")


class Tape:
    """Memory for a work that runs twice: what the first run was given, the second is given again, in the same order.

    The first run takes from a pool of its own and gives back what it drops, so later requests of that run reuse it.
    A pool alone would not do for the second: its best fit may split a block that the first run had whole, and then
    it would have to grow in the middle of the recording.
    """

    def __init__(self, cupy: Any) -> None:
        self._memory = cupy.cuda.memory
        self.pool = self._memory.MemoryPool()
        self._given: list[tuple[int, int]] = []  # bytes, address
        self._next: int | None = None
        self._bytes = 0

    def record(self) -> None:
        """Allocate nothing from here on."""
        self._next, self._bytes = 0, self.pool.total_bytes()

    def allocate(self, nbytes: int) -> Any:
        """Return a MemoryPointer."""
        if self._next is None:
            pointer = self.pool.malloc(nbytes)
            if self.pool.total_bytes() < self._bytes:  # short of memory, the pool gave back what was noted here
                raise BackendError(
                    "the device has too little memory to record this batch size: release graphs or corpora that are "
                    "not used (hopfuse.free_device_memory), or ask smaller batches"
                )
            self._bytes = self.pool.total_bytes()
            self._given.append((nbytes, pointer.ptr))
            return pointer
        given = self._given[self._next] if self._next < len(self._given) else None
        if given is None or given[0] != nbytes:
            raise RuntimeError("a captured work asks for other memory in its recording than in the run before it")
        self._next += 1
        # The pool keeps the memory; the array keeps the pool.
        return self._memory.MemoryPointer(self._memory.UnownedMemory(given[1], nbytes, self.pool), 0)

    def check(self) -> None:
        """Check that the recording asked for all that the run before it did, and that the pool did not grow."""
        if self._next != len(self._given):
            raise RuntimeError("a captured work asks for less memory in its recording than in the run before it")
        assert self.pool.total_bytes() == self._bytes


class Capture:
    """What a thread records into."""

    def __init__(self, cupy: Any) -> None:
        self.tape = Tape(cupy)
        # Apart from the tape: a constant must not lie where the run before had dropped an array, since replays
        # write there again.
        self.constant_pool = cupy.cuda.memory.MemoryPool()
        self.constants = Constants()
        self.host: list[NDArray[Any]] = []  # pinned memory that copies read at each replay
        self.is_recording = False

    def upload(self, array: NDArray[Any], make: Callable[[NDArray[Any]], DeviceArray]) -> DeviceArray:
        return self.constants.upload(array, make)

    def refuse(self, what: str) -> RuntimeError:
        return RuntimeError(
            f"{what} inside a capture: its work is queued again by every replay, and nothing may wait for a result"
        )


class CupyRecording:
    """A CUDA graph with the memory, constants and host memory that it uses."""

    def __init__(self, cupy: Any, graph: Any, capture: Capture, stream: Any) -> None:
        self._cupy, self._graph, self._capture, self._recorded_on = cupy, graph, capture, stream
        self._device = int(cupy.cuda.Device().id)

    def replay(self) -> None:
        with self._cupy.cuda.Device(self._device), translated(self._cupy, "launching a CUDA graph"):
            self._graph.launch(self._cupy.cuda.get_current_stream())


def record(cupy: Any, capture: Capture, work: Callable[[], T]) -> tuple[CupyRecording, T]:
    """Run ``work``, then record it; the caller's stream goes on after the run. The thread is already in ``capture``."""
    caller = cupy.cuda.get_current_stream()
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(caller.record())
    with stream:
        work()
        capture.tape.record()
        capture.constants.record()
        capture.is_recording = True
        # Relaxed, CuPy's default: other threads may allocate meanwhile, and so may a garbage collection here free.
        stream.begin_capture()
        try:
            result = work()
        except BaseException:
            _drop_recording(stream)
            raise
        graph = stream.end_capture()
    capture.tape.check()
    stream.synchronize()  # replays may be queued on any stream: the run before must have left the memory
    return CupyRecording(cupy, graph, capture, stream), result


def _drop_recording(stream: Any) -> None:
    """Leave capture mode, after which the stream can be dropped. The error that led here is the one to show."""
    try:
        stream.end_capture()
    except RuntimeError:
        return


def host_address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0]) if array.size else 0


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
