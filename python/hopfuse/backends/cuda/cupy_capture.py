"""Recording queued work as a CUDA graph: a stream, memory and constants of its own."""

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
    """What a thread records into."""

    def __init__(self, cupy: Any, memory: RecordingMemory, constant_memory: RecordingMemory) -> None:
        self._cupy = cupy
        self.tape = Tape(memory)
        # Apart from the tape: a constant must not lie where a run had dropped an array, since replays write there
        # again.
        self._constant_memory = constant_memory
        self.constants = Constants()
        self.host: list[NDArray[Any]] = []  # pinned memory that copies read at each replay
        self.is_recording = False

    def allocate(self, nbytes: int) -> Any:
        """Return a MemoryPointer, of what replays may use again."""
        return _pointer(self._cupy, self.tape.take(nbytes), nbytes)

    def allocate_results(self, arrays: Sequence[tuple[int, int]], begins: Sequence[int], nbytes: int) -> Any:
        """Return a MemoryPointer, of a block that a recording's results lie in: :meth:`.Tape.side_by_side`."""
        return _pointer(self._cupy, self.tape.side_by_side(arrays, begins, nbytes), nbytes)

    def allocate_constant(self, nbytes: int) -> Any:
        """Return a MemoryPointer, of what no replay writes to."""
        return _pointer(self._cupy, self._constant_memory.take(nbytes), nbytes)

    def upload(self, array: NDArray[Any], make: Callable[[NDArray[Any]], DeviceArray]) -> DeviceArray:
        return self.constants.upload(array, make)

    def refuse(self, what: str) -> RuntimeError:
        return RuntimeError(
            f"{what} inside a capture: its work is queued again by every replay, and nothing may wait for a result"
        )


def _pointer(cupy: Any, held: Lease | Place, nbytes: int) -> Any:
    """Return the block as CuPy's arrays take it; they hold what ``held`` does."""
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(held.block.ptr, held.begin + nbytes, held), held.begin)


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
