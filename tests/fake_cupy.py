"""As much of CuPy as the runtime calls, on the host: memory by address, streams that run at once, graphs that record.

Kernels run on the SIMT emulator. What this cannot show is CUDA's own behaviour; the names and arguments are held
against the real CuPy in tests/cuda/test_cupy_without_device.py.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
POISON = 0xAB


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class NVRTCError(RuntimeError):
    pass


class Memory:
    """An allocation; fresh memory has no zeros."""

    def __init__(self, nbytes: int) -> None:
        self.buffer = (ctypes.c_char * max(1, nbytes))()
        self.ptr = ctypes.addressof(self.buffer)
        ctypes.memset(self.ptr, POISON, nbytes)


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem: Any, offset: int, on_drop: Callable[[Any], None] | None = None) -> None:
        self.mem, self.ptr, self._on_drop = mem, mem.ptr + offset, on_drop

    def __del__(self) -> None:
        if self._on_drop is not None:
            self._on_drop(self.mem)


class MemoryPool:
    """Gives dropped blocks of the same size again."""

    def __init__(self) -> None:
        self.free: dict[int, list[Memory]] = {}
        self.total = self.used = 0
        self.limit: int | None = None

    def malloc(self, nbytes: int) -> MemoryPointer:
        if self.limit is not None and self.used + nbytes > self.limit:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes")
        kept = self.free.setdefault(nbytes, [])
        if not kept:
            self.total += nbytes
        memory = kept.pop() if kept else Memory(nbytes)
        self.used += nbytes

        def back(mem: Memory) -> None:
            self.used -= nbytes
            kept.append(mem)

        return MemoryPointer(memory, 0, back)

    def total_bytes(self) -> int:
        return self.total

    def used_bytes(self) -> int:
        return self.used

    def free_bytes(self) -> int:
        return self.total - self.used

    def get_limit(self) -> int:
        return self.limit or 0

    def free_all_blocks(self) -> None:
        self.total = self.used
        self.free.clear()


class Stream:
    null: Stream
    ptds: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, address: int | None = None) -> None:
        self.ptr = 0 if null else address or id(self)
        self.recording: list[Callable[[], None]] | None = None
        self.waited_for: list[Any] = []
        self.begun = 0

    @classmethod
    def from_external(cls, owner: Any) -> Stream:
        version, address = owner.__cuda_stream__()
        assert version == 0
        return cls(address=address)

    def __enter__(self) -> Stream:
        _thread.streams = [*_streams(), self]
        return self

    def __exit__(self, *error: Any) -> None:
        _thread.streams = _streams()[:-1]

    def record(self) -> tuple[str, Stream]:
        return ("event", self)

    def wait_event(self, event: Any) -> None:
        self.waited_for.append(event)

    def synchronize(self) -> None:
        self.waited_for.append(("everything", self))

    def begin_capture(self) -> None:
        assert self.ptr != 0
        self.recording = []

    def end_capture(self) -> Graph:
        assert self.recording is not None
        recorded, self.recording = self.recording, None
        return Graph(recorded)


class Graph:
    def __init__(self, recorded: list[Callable[[], None]]) -> None:
        self.recorded = recorded
        self.launched_on: list[Stream] = []

    def launch(self, stream: Stream) -> None:
        self.launched_on.append(stream)
        for work in self.recorded:
            work()


Stream.null, Stream.ptds = Stream(null=True), Stream(address=2)
_thread = threading.local()


def _streams() -> list[Stream]:
    return getattr(_thread, "streams", [Stream.null])


def current_stream() -> Stream:
    return _streams()[-1]


def queue(work: Callable[[], None]) -> None:
    """Now, or at each launch of the graph that is being recorded."""
    recording = current_stream().recording
    work() if recording is None else recording.append(work)


def view_of(address: int, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8).view(dtype).reshape(shape)


class FakeArray:
    """A cupy.ndarray whose memory the host can see."""

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, host: Any = None) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.memory = memptr
        empty = memptr is None and host is None
        self.host = np.empty(shape, dtype) if empty else host if host is not None else view_of(memptr.ptr, shape, dtype)
        assert not (empty and self.host.size)
        self.shape, self.dtype, self.strides = self.host.shape, self.host.dtype, self.host.strides
        self.size, self.nbytes = self.host.size, self.host.nbytes
        self.device = SimpleNamespace(id=0)

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.host.__array_interface__["data"][0])

    def _like(self, host: Any) -> FakeArray:
        assert np.shares_memory(host, self.host) or not host.size
        return FakeArray(host.shape, host.dtype, self.memory, host)

    def reshape(self, *shape: Any) -> FakeArray:
        return self._like(self.host.reshape(*shape))

    def view(self, dtype: Any) -> FakeArray:
        return self._like(self.host.view(dtype))

    def __getitem__(self, key: Any) -> FakeArray:
        return self._like(self.host[key])


class Runtime:
    """``cupy.cuda.runtime``."""

    CUDARuntimeError = CUDARuntimeError
    memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE  # noqa: N815
    is_hip = False

    def __init__(self) -> None:
        self.pinned: set[int] = set()
        self.devices: dict[int, int] = {}
        self.waits = 0

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
        assert stream == current_stream().ptr
        assert kind != DEVICE_TO_HOST or current_stream().recording is None
        queue(lambda: ctypes.memmove(dst, src, size) and None)

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:  # noqa: N802
        assert stream == current_stream().ptr
        queue(lambda: ctypes.memset(ptr, value, size) and None)

    def streamSynchronize(self, stream: int) -> None:  # noqa: N802
        assert current_stream().recording is None
        self.waits += 1

    def pointerGetAttributes(self, ptr: int) -> Any:  # noqa: N802
        return SimpleNamespace(type=1 if ptr in self.pinned else 0, device=self.devices.get(ptr, 0))

    def getDeviceProperties(self, device: int) -> Any:  # noqa: N802
        return {"name": b"A host in disguise"}

    def driverGetVersion(self) -> int:  # noqa: N802
        return 13010

    def runtimeGetVersion(self) -> int:  # noqa: N802
        return 13020

    def getDeviceCount(self) -> int:  # noqa: N802
        return 1


class Device:
    compute_capability = "90"
    mem_info = (10**9, 2 * 10**9)

    def __init__(self, number: int = 0) -> None:
        self.id = number

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: Any) -> None: ...


class FakeCupy:
    """The module ``cupy``; ``simt`` is the emulator's module, ``refuse_fatbins`` a driver that is too old for them."""

    __version__ = "14.fake"
    ndarray = FakeArray
    dtype, float32 = np.dtype, np.float32

    def __init__(self, simt: Any) -> None:
        self.pool, self.loaded, self.launches, self.refuse_fatbins = MemoryPool(), [], [], False
        self.runtime = runtime = Runtime()
        fake = self

        class Module:
            def load(self, image: bytes) -> None:
                if image.startswith(b"fatbin") and fake.refuse_fatbins:
                    raise CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU")
                fake.loaded.append(image)

            def get_function(self, name: str) -> Function:
                return Function(name)

        class Function:
            def __init__(self, name: str) -> None:
                self.name, self.ptr, self.prepared = name, id(self), 48 * 1024

            def __call__(self, grid: Any, block: Any, arguments: Any, shared: int = 0) -> None:
                given = []
                for argument, code in zip(arguments, simt.signature(self.name).split(","), strict=True):
                    is_pointer = "*" in code
                    assert is_pointer == (isinstance(argument, FakeArray) or type(argument) is np.uint64)
                    given.append(None if is_pointer and not isinstance(argument, FakeArray) else
                                 argument.host if is_pointer else argument)  # fmt: skip
                fake.launches.append(self.name)
                queue(lambda: simt.launch(self.name, grid[0], block[0], shared, given) and None)

        def alloc_pinned(nbytes: int) -> Any:
            buffer = (ctypes.c_char * nbytes)()
            runtime.pinned.add(ctypes.addressof(buffer))
            return buffer

        attribute = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        memory = SimpleNamespace(
            MemoryPool=MemoryPool,
            MemoryPointer=MemoryPointer,
            UnownedMemory=UnownedMemory,
            OutOfMemoryError=OutOfMemoryError,
        )
        self.prepared: list[tuple[int, int]] = []
        driver = SimpleNamespace(
            CUDADriverError=CUDADriverError,
            funcSetAttribute=lambda function, name, value: self.prepared.append((name, value)),
            **{attribute: 8},
        )
        self.cuda = SimpleNamespace(
            memory=memory, runtime=runtime, driver=driver, Stream=Stream, Device=Device, Module=Module,
            UnownedMemory=UnownedMemory, MemoryPointer=MemoryPointer, get_current_stream=current_stream,
            alloc=lambda nbytes: self.pool.malloc(nbytes), alloc_pinned_memory=alloc_pinned,
        )  # fmt: skip

    def get_default_memory_pool(self) -> MemoryPool:
        return self.pool

    def get_default_pinned_memory_pool(self) -> Any:
        return SimpleNamespace(free_all_blocks=lambda: None)
