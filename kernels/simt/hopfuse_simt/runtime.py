"""The emulator as a runtime of hopfuse's device backend: ``backend="simt"`` in the tests.

It keeps a device's rules where a host would let things pass: fresh memory is poisoned, an array that was dropped may be
given out again, and while a work is recorded nothing is allocated, uploaded, read back or waited for.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hopfuse.backends.cancellation import check_cancelled
from hopfuse.backends.cuda.arguments import Arguments
from hopfuse.backends.cuda.recording_memory import Lease, Place, RecordingMemory, Tape
from hopfuse.backends.cuda.runtime import Constants, LaunchTime
from hopfuse.errors import BackendError, InputError

from hopfuse_simt.arguments import Pointer, Struct
from hopfuse_simt.module import SimtModule

CUDA = Path(__file__).parents[2] / "cuda"
T = TypeVar("T")
Array = np.ndarray[Any, Any]


class SimtError(RuntimeError):
    """Something that a device would refuse or silently do wrong."""


class SimtArray:
    """A caller's array on the emulator's device: the host can read it only by its address."""

    def __init__(self, array: Array, owner: SimtRuntime | None = None) -> None:
        self._array, self.owner = array, owner  # no owner: any emulator may read it
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._array.__array_interface__, "version": 3, "stream": 1}

    def get(self) -> Array:
        """A copy on the host."""
        return self._array.copy()


class Event(NamedTuple):
    """A call to the device: its kind and size."""

    kind: str  # "allocate", "upload", "download", "copy", "clear", "launch", "matmul", "replay"
    what: Any


class SimtRecording:
    """Launches and copies to repeat, with the memory and the constants that they use."""

    def __init__(self, runtime: SimtRuntime, memory: RecordingMemory, constants: Constants) -> None:
        self.runtime, self.memory, self.constants = runtime, memory, constants
        self.queue: list[tuple[Event, Callable[[], None]]] = []

    def replay(self) -> None:
        if self.runtime.fixed:
            raise SimtError("a recording is replayed inside a recording")
        self.runtime.events.append(Event("replay", len(self.queue)))
        for _, work in self.queue:
            work()


class SimtRuntime:
    """Device memory is host memory.

    ``sources`` are the .cu files, all of kernels/cuda by default; ``order``, ``seed`` and ``mma`` are those of
    :meth:`SimtModule.launch`; ``launches`` lists (kernel, grid, block) since it was last emptied, ``counters`` what
    each of them counted, and ``events`` all that was asked. ``memory`` is what the device has, in bytes, and
    ``blocks_at_once`` how many blocks run together.
    """

    name = "simt"
    cooperative, blocks_at_once = True, 2
    l2_bytes, l2_speedup = 1 << 26, 1.0

    def __init__(
        self,
        build: str = "plain",
        order: str = "forward",
        seed: int = 0,
        sources: Sequence[Path] | None = None,
        capability: int = 90,
    ) -> None:
        self.module = SimtModule(sources or sorted(CUDA.glob("*.cu")), build=build, capability=capability)
        self.order, self.seed, self.mma = order, seed, "h100"
        self.memory = 1 << 40
        self.launches: list[tuple[str, int, int]] = []
        self.counters: list[Any] = []
        self.events: list[Event] = []
        self._times: list[LaunchTime] | None = None
        self._recording: SimtRecording | None = None
        self._tape: Tape | None = None
        self._constants: Constants | None = None

    @property
    def fixed(self) -> bool:
        return self._constants is not None

    # ---- Memory --------------------------------------------------------------------------------------------------

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self._block(max(1, size))[:size].view(dtype).reshape(shape)

    def empty_all(self, arrays: Sequence[tuple[tuple[int, ...], Any]]) -> list[Array]:
        return [self.empty(*array) for array in arrays]  # apart, so that a sanitizer sees the end of each

    def _block(self, size: int) -> Array:
        if size > self.memory:
            raise BackendError(
                "memory",
                None,
                "the device has {free} bytes free and {given} were asked for",
                free=self.memory,
                given=size,
            )
        if self._tape is None:
            self.events.append(Event("allocate", size))
            return np.full(size, 0xFF, np.uint8)
        array = _held(self._tape.take(size), size)
        if self._recording is not None:  # a replay starts from poison too
            place = _place(array)
            self._recording.queue.append((Event("poison", size), lambda: place.fill(0xFF)))
        array.fill(0xFF)
        return array

    def _new_block(self, size: int) -> Array:
        self.events.append(Event("allocate", size))
        return np.empty(size, np.uint8)

    def recording_memory(self) -> RecordingMemory:
        return RecordingMemory(self._new_block, _address)

    def side_by_side(self, arrays: Sequence[Array], begins: Sequence[int], nbytes: int) -> Array:
        assert self._tape is not None
        places = [(_address(array), array.nbytes) for array in arrays]
        block = _held(self._tape.side_by_side(places, begins, nbytes), nbytes)
        for begin, array in zip(begins, arrays, strict=True):
            if array.nbytes and _address(array) != _address(block) + begin:
                self.copy(block[begin : begin + array.nbytes], array)
        return block

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        array = self.empty(shape, dtype)
        place = self._kept(array)
        self._do(Event("clear", array.nbytes), lambda: place.fill(0))
        return array

    def upload(self, array: Array) -> Array:
        if not array.flags.c_contiguous:
            raise SimtError("an upload of an array that is not C-contiguous")
        if self._constants is not None:
            return self._constants.upload(array, self._make)  # type: ignore[no-any-return]
        return self._make(array)

    def upload_all(self, arrays: Sequence[Array]) -> list[Array]:
        return [self.upload(array) for array in arrays]

    def _make(self, array: Array) -> Array:
        self.events.append(Event("upload", array.nbytes))
        return np.array(array, order="C")

    def download(self, array: Array) -> Array:
        if self.fixed:
            raise SimtError("a download inside a capture")
        self.events.append(Event("download", array.nbytes))
        return array.copy()

    def download_all(self, arrays: Sequence[Array]) -> list[Array]:
        return [self.download(array) for array in arrays]

    def copy(self, target: Array, source: Array) -> None:
        if target.nbytes != source.nbytes or not (target.flags.c_contiguous and source.flags.c_contiguous):
            raise SimtError(f"a copy of {source.shape} {source.dtype} to {target.shape} {target.dtype}")
        target, source = self._kept(target), self._kept(source)

        def work() -> None:
            target.reshape(-1).view(np.uint8)[:] = source.reshape(-1).view(np.uint8)

        self._do(Event("copy", target.nbytes), work)

    def pinned(self, nbytes: int) -> Array:
        return np.zeros(nbytes, np.uint8)

    def free_bytes(self) -> int:
        return self.memory

    def trim(self) -> None:
        """Do nothing, as no memory is cached."""

    @contextlib.contextmanager
    def resident(self) -> Iterator[None]:
        if self._recording is not None:
            raise SimtError("what stays on the device is made inside a recording")
        kept = self._tape, self._constants
        self._tape = self._constants = None
        try:
            yield
        finally:
            self._tape, self._constants = kept

    # ---- Work ----------------------------------------------------------------------------------------------------

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
        check_cancelled()
        if cooperative and grid > self.blocks_at_once:
            raise SimtError(f"a cooperative launch of {grid} blocks, and the device runs {self.blocks_at_once} at once")
        given = [self._given(one) for one in arguments]

        def work() -> None:
            counters = self.module.launch(
                kernel, grid, block, shared, given, self.order, self.seed, self.mma, cooperative=cooperative
            )
            self.launches.append((kernel, grid, block))
            self.counters.append(counters)

        begin = time.perf_counter()
        self._do(Event("launch", kernel), work)
        if self._times is not None and self._recording is None:
            self._times.append(LaunchTime(kernel, time.perf_counter() - begin))

    def resident_blocks(self, kernel: str, block: int, shared: int) -> int:
        return self.blocks_at_once

    def _given(self, argument: Any) -> Any:
        if isinstance(argument, Arguments):
            pointers = {}
            for name, offset, array in argument.pointers():
                if not array.flags.c_contiguous:
                    raise SimtError(f"{argument.struct.name}.{name} is not C-contiguous")
                pointers[offset] = Pointer(self._kept(array) if array.nbytes else None, True)
            return Struct(argument.packed(lambda array: 0).tobytes(), pointers)
        return self._kept(argument) if isinstance(argument, np.ndarray) else argument

    @contextlib.contextmanager
    def timed(self) -> Iterator[list[LaunchTime]]:
        """Return host time, that of the emulator and not of any device."""
        self._times = []
        try:
            yield self._times
        finally:
            self._times = None

    def matmul(self, a: Array, b: Array, out: Array) -> None:
        a, b, out = self._kept(a), self._kept(b), self._kept(out)
        self._do(Event("matmul", out.shape), lambda: self._multiply(a, b, out))

    def _multiply(self, a: Array, b: Array, out: Array) -> None:
        with np.errstate(all="ignore"):  # a device has no warnings
            np.matmul(a, b.T, out=out)

    def _kept(self, array: Array) -> Array:
        """Return what queued work keeps of an array: a recording has only its address, as on a device."""
        return array if self._recording is None else _place(array)

    def _do(self, event: Event, work: Callable[[], None]) -> None:
        self.events.append(event)
        if self._recording is not None:
            self._recording.queue.append((event, work))
        else:
            work()

    def capture(self, work: Callable[[], T], memory: RecordingMemory | None = None) -> tuple[SimtRecording, T]:
        if self.fixed:
            raise SimtError("captures cannot be nested")
        self._tape = Tape(self.recording_memory() if memory is None else memory)
        self._constants = Constants()
        try:
            work()
            self._tape.record()
            self._constants.record()
            self._recording = SimtRecording(self, self._tape.memory, self._constants)
            result = work()
            self._tape.check()
            return self._recording, result
        except BaseException:
            self._tape.abandon()
            raise
        finally:
            self._recording = self._tape = self._constants = None

    # ---- The caller's arrays ---------------------------------------------------------------------------------------

    def is_device_array(self, array: Any) -> bool:
        return hasattr(array, "__cuda_array_interface__") and getattr(array, "owner", None) in (None, self)

    def adopt(self, array: Any) -> Array:
        interface = array.__cuda_array_interface__
        if interface.get("strides") is not None:
            raise InputError("shape", None, "the array is not C-contiguous; pass a contiguous copy")
        return np.asarray(_Address({name: value for name, value in interface.items() if name != "stream"}, array))

    def export(self, array: Array, like: Any) -> Any:
        return SimtArray(array, self)

    def on_stream_of(self, array: Any) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def explain(self) -> dict[str, Any]:
        return {"device": "SIMT emulator on the host", "kernels": list(self.module.kernels)}


def _place(array: Array) -> Array:
    """Return the array without keeping its memory alive."""
    return np.asarray(_Address(array.__array_interface__, None))


class _Address:
    """The address of an array, with the objects that keep it alive."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__, self.owner = interface, owner


class _Held:
    """This many bytes of a recording's block, which is kept alive."""

    def __init__(self, held: Lease | Place, size: int) -> None:
        self._held = held
        self.__array_interface__ = held.block[held.begin : held.begin + size].__array_interface__


def _held(held: Lease | Place, size: int) -> Array:
    return np.asarray(_Held(held, size))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
