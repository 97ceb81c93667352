"""Record queued work as a CUDA graph, with its own stream, memory and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .cupy_errors import translated
from .recording_memory import Lease, Place, RecordingMemory, Tape
from .runtime import Constants, DeviceArray

T = TypeVar("T")


class Capture:
    """The state of a thread that is recording."""

    def __init__(self, cupy: Any, memory: RecordingMemory, constant_memory: RecordingMemory) -> None:
        self._cupy = cupy
        self.tape = Tape(memory)
        # Constants are not on the tape, which may reuse the memory of dropped arrays; replays write to that again.
        self._constant_memory = constant_memory
        self.constants = Constants()
        self.host: list[NDArray[Any]] = []  # pinned memory that copies read at each replay
        self.is_recording = False

    def allocate(self, nbytes: int) -> Any:
        """Return a MemoryPointer to memory that replays may reuse."""
        return _pointer(self._cupy, self.tape.take(nbytes), nbytes)

    def allocate_results(self, arrays: Sequence[tuple[int, int]], begins: Sequence[int], nbytes: int) -> Any:
        """Return a MemoryPointer to one block for the results of a recording; see :meth:`.Tape.side_by_side`."""
        return _pointer(self._cupy, self.tape.side_by_side(arrays, begins, nbytes), nbytes)

    def allocate_constant(self, nbytes: int) -> Any:
        """Return a MemoryPointer to memory that no replay writes to."""
        return _pointer(self._cupy, self._constant_memory.take(nbytes), nbytes)

    def upload(self, array: NDArray[Any], make: Callable[[NDArray[Any]], DeviceArray]) -> DeviceArray:
        return self.constants.upload(array, make)

    def refuse(self, what: str) -> RuntimeError:
        return RuntimeError(
            f"{what} is not possible inside a capture, whose work is replayed without waiting for results"
        )


def _pointer(cupy: Any, held: Lease | Place, nbytes: int) -> Any:
    """Return a CuPy MemoryPointer to a block; arrays over it keep ``held`` alive."""
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(held.block.ptr, held.begin + nbytes, held), held.begin)


class CupyRecording:
    """A CUDA graph that keeps alive the device memory, constants and host memory that it uses."""

    def __init__(self, cupy: Any, graph: Any, capture: Capture, stream: Any) -> None:
        self._cupy, self._graph, self._capture, self._recorded_on = cupy, graph, capture, stream
        self._device = int(cupy.cuda.Device().id)

    def replay(self) -> None:
        with self._cupy.cuda.Device(self._device), translated(self._cupy, "launching a CUDA graph"):
            self._graph.launch(self._cupy.cuda.get_current_stream())


def record(cupy: Any, capture: Capture, work: Callable[[], T]) -> tuple[CupyRecording, T]:
    """Run ``work`` once, then record it, on a stream that waits for the caller's; the thread must be in ``capture``."""
    caller = cupy.cuda.get_current_stream()
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(caller.record())
    with stream:
        work()
        capture.tape.record()
        capture.constants.record()
        capture.is_recording = True
        # CuPy's default mode is relaxed: other threads may allocate, and a garbage collection here may free memory.
        stream.begin_capture()
        try:
            result = work()
        except BaseException:
            _drop_recording(stream)
            raise
        graph = stream.end_capture()
    capture.tape.check()
    stream.synchronize()  # replays may run on any stream and must not overlap the run above, which shares their memory
    return CupyRecording(cupy, graph, capture, stream), result


def _drop_recording(stream: Any) -> None:
    """End the capture so that the stream can be dropped; errors are ignored in favour of the original one."""
    try:
        stream.end_capture()
    except RuntimeError:
        return


def host_address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0]) if array.size else 0


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
