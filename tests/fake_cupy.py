"""The part of CuPy that the runtime calls, on the devices of :mod:`fake_cuda`; kernels run on the SIMT emulator.

Pools behave like those of CuPy 14.2.0: blocks return to the stream on which they were allocated; when a pool is
deleted, its free blocks stay allocated, and its used blocks are freed under their arrays. This does not model CUDA's
own behaviour. tests/cuda/test_cupy_without_device.py compares the names and arguments with the real CuPy.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import time
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from fake_cuda import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    POISON,
    Block,
    Cuda,
    CUDARuntimeError,
    Operation,
    Touch,
    view_of,
)

cuda = Cuda()
#: Free blocks of pools, by pool, device, stream and size; only the pool's own call frees them.
_kept: dict[int, dict[tuple[int, int, int], list[Memory]]] = {}
#: Living pools, by number, since garbage collection clears weak references that are themselves garbage.
_pools: weakref.WeakValueDictionary[int, MemoryPool] = weakref.WeakValueDictionary()
_numbers = itertools.count(4096, 8)


#: Blocks of a kernel that a device runs at once.
RESIDENT_BLOCKS = 2


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


# ---- Devices and streams -----------------------------------------------------------------------------------------


class Device:
    compute_capability = "90"
    attributes = {  # noqa: RUF012
        "L2CacheSize": 1 << 26, "MemoryClockRate": 1, "GlobalMemoryBusWidth": 8, "ClockRate": 1,
        "MultiProcessorCount": 1, "CooperativeLaunch": 1,
    }  # fmt: skip

    def __init__(self, number: int | None = None) -> None:
        self.id = cuda.device if number is None else number
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(cuda.device)
        cuda.device = self.id
        return self

    def __exit__(self, *error: Any) -> None:
        cuda.device = self._before.pop()

    @property
    def mem_info(self) -> tuple[int, int]:
        return cuda.memory - cuda.used[self.id], cuda.memory


class Event:
    """``passed`` is the host's time at which it passed; an event of a recording never passes."""

    def __init__(self, disable_timing: bool = False) -> None:
        self.operation: Operation | None = None
        self.passed: float | None = None
        self.has_time = not disable_timing

    def record_on(self, stream: Stream) -> None:
        self.passed, queue = None, cuda.queue_of(stream.ptr)
        if queue.recording is None:
            cuda.submit(stream.ptr, self._pass)
        self.operation = queue.last

    def synchronize(self) -> None:
        cuda.wait(self.operation)

    def _pass(self) -> None:
        self.passed = time.perf_counter()


def get_elapsed_time(begin: Event, end: Event) -> float:
    """Return the milliseconds between them, as cudaEventElapsedTime does."""
    if not (begin.has_time and end.has_time and begin.operation and end.operation):
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    if begin.passed is None or end.passed is None:
        raise CUDARuntimeError("cudaErrorNotReady: device not ready")
    return 1e3 * (end.passed - begin.passed)


class Stream:
    null: Stream
    ptds: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, address: int | None = None) -> None:
        self.ptr = 0 if null else address or next(_numbers)
        self.device_id = cuda.device if self.ptr > 2 else -1
        if address is None and not null:
            cuda.make_queue(self.ptr, not non_blocking)

    @classmethod
    def from_external(cls, owner: Any) -> Stream:
        version, address = owner.__cuda_stream__()
        assert version == 0
        return cls(address=address)

    def __enter__(self) -> Stream:
        if self.device_id not in (-1, cuda.device):
            raise RuntimeError(f"the stream is of device {self.device_id}, and the current one is {cuda.device}")
        _streams().append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _streams(None if self.device_id == -1 else self.device_id).pop()

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record_on(self)
        return event

    def wait_event(self, event: Event) -> None:
        if event.operation is not None:
            cuda.queue_of(self.ptr).waits.append(event.operation)

    def synchronize(self) -> None:
        queue = cuda.queue_of(self.ptr)
        cuda.wait(queue.last, queue.recording)

    def begin_capture(self) -> None:
        assert self.ptr > 2
        cuda.queue_of(self.ptr).recording = []

    def end_capture(self) -> Graph:
        queue = cuda.queue_of(self.ptr)
        assert queue.recording is not None
        recorded, queue.recording = queue.recording, None
        return Graph(recorded, queue.device)


class Graph:
    def __init__(self, recorded: list[tuple[Callable[[], None], tuple[Touch, ...]]], device: int) -> None:
        self.recorded, self.device = recorded, device
        self.launched_on: list[Stream] = []
        self.touches = tuple(dict.fromkeys(touch for _, touches in recorded for touch in touches))

    def launch(self, stream: Stream) -> None:
        if cuda.device != self.device:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: a graph of another device")
        self.launched_on.append(stream)
        cuda.submit(stream.ptr, self._run, self.touches)

    def _run(self) -> None:
        for work, _ in self.recorded:
            work()


Stream.null, Stream.ptds = Stream(null=True), Stream(address=2)


def _streams(device: int | None = None) -> list[Stream]:
    stacks = cuda.local.__dict__.setdefault("streams", {})
    stack: list[Stream] = stacks.setdefault(cuda.device if device is None else device, [Stream.null])
    return stack


def current_stream() -> Stream:
    return _streams()[-1]


def queue(work: Callable[[], None], *touches: Touch) -> None:
    """Queue it on the current stream."""
    cuda.submit(current_stream().ptr, work, touches)


# ---- Memory ------------------------------------------------------------------------------------------------------


class Memory:
    """An allocation by cudaMalloc, freed when the object is deleted."""

    def __init__(self, nbytes: int) -> None:
        self.block: Block = cuda.malloc(nbytes)
        self.ptr, self.size, self.device_id = self.block.begin, nbytes, self.block.device

    def __del__(self) -> None:
        block = getattr(self, "block", None)
        if block is not None:
            cuda.free(block)


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, nbytes: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + nbytes)


class _Pooled:
    """A block in use of a pool."""

    def __init__(self, pool: MemoryPool, memory: Memory, key: tuple[int, int, int]) -> None:
        self.ptr, self.size, self._pool, self._key = memory.ptr, memory.size, pool.number, key

    def __del__(self) -> None:
        pool = _pools.get(self._pool)
        if pool is not None:
            pool.take_back(self.ptr, self._key)


class MemoryPool:
    """A pool that reuses blocks for the same size, stream and device."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        _pools[self.number] = self
        self._in_use: dict[int, Memory] = {}
        self.limit: int | None = None
        _kept[self.number] = {}

    @property
    def free(self) -> dict[tuple[int, int, int], list[Memory]]:
        return _kept[self.number]

    def malloc(self, nbytes: int) -> MemoryPointer:
        key = cuda.device, current_stream().ptr, nbytes
        with cuda.lock:
            kept = self.free.setdefault(key, [])
            memory = kept.pop() if kept else self._allocate(nbytes)
            self._in_use[memory.ptr] = memory
            cuda.poison(cuda.queue_of(key[1]), memory.block)
        return MemoryPointer(_Pooled(self, memory, key), 0)

    def _allocate(self, nbytes: int) -> Memory:
        if self.limit is not None and self.total_bytes() + nbytes > self.limit:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes (limit)")
        for again in (lambda: None, gc.collect):
            try:
                return Memory(nbytes)
            except CUDARuntimeError:
                again()
                self.free_all_blocks()
        try:
            return Memory(nbytes)
        except CUDARuntimeError as error:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes") from error

    def take_back(self, ptr: int, key: tuple[int, int, int]) -> None:
        with cuda.lock:
            memory = self._in_use.pop(ptr)
            with Device(key[0]):
                cuda.poison(cuda.queue_of(key[1]), memory.block)
            self.free.setdefault(key, []).append(memory)

    def used_bytes(self) -> int:
        return sum(memory.size for memory in self._in_use.values() if memory.device_id == cuda.device)

    def free_bytes(self) -> int:
        return sum(size * len(kept) for (device, _, size), kept in self.free.items() if device == cuda.device)

    def total_bytes(self) -> int:
        return self.used_bytes() + self.free_bytes()

    def get_limit(self) -> int:
        return self.limit or 0

    def free_all_blocks(self) -> None:
        """Free the blocks of the current device."""
        for key in [key for key in self.free if key[0] == cuda.device]:
            del self.free[key]


def _pinned(nbytes: int) -> Any:
    """Return memory whose content is overwritten when it is freed, as by another allocation."""
    buffer = (ctypes.c_char * nbytes)()
    _pinned_buffers.append(buffer)
    begin = ctypes.addressof(buffer)
    _pinned_at.append((begin, begin + nbytes))
    lent = (ctypes.c_char * nbytes).from_address(begin)
    weakref.finalize(lent, ctypes.memset, begin, POISON, nbytes).atexit = False
    return lent


_pinned_buffers: list[Any] = []
_pinned_at: list[tuple[int, int]] = []


def _is_pinned(address: int) -> bool:
    return any(begin <= address < end for begin, end in _pinned_at)


# ---- Arrays ------------------------------------------------------------------------------------------------------


class FakeArray:
    """A cupy.ndarray. ``host`` is its memory as the host sees it, regardless of queued work."""

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, host: Any = None) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.memory = memptr
        empty = memptr is None and host is None
        self.host = np.empty(shape, dtype) if empty else host if host is not None else view_of(memptr.ptr, shape, dtype)
        assert not (empty and self.host.size)
        self.shape, self.dtype, self.strides = self.host.shape, self.host.dtype, self.host.strides
        self.size, self.nbytes = self.host.size, self.host.nbytes
        self.device = SimpleNamespace(id=cuda.device)

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.host.__array_interface__["data"][0], mem=getattr(self.memory, "mem", None))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        given = self.host.__array_interface__
        stream = current_stream().ptr or 1
        return {
            **{name: given[name] for name in ("shape", "typestr", "data", "strides")},
            "version": 3,
            "stream": stream,
        }

    def touch(self, writes: bool) -> Touch:
        return Touch(self.data.ptr, self.nbytes, writes)

    def _like(self, host: Any) -> FakeArray:
        assert np.shares_memory(host, self.host) or not host.size
        return FakeArray(host.shape, host.dtype, self.memory, host)

    def reshape(self, *shape: Any) -> FakeArray:
        return self._like(self.host.reshape(*shape))

    def view(self, dtype: Any) -> FakeArray:
        return self._like(self.host.view(dtype))

    def __getitem__(self, key: Any) -> FakeArray:
        return self._like(self.host[key])


# ---- The module --------------------------------------------------------------------------------------------------


class Runtime:
    """``cupy.cuda.runtime``."""

    CUDARuntimeError = CUDARuntimeError
    memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE  # noqa: N815
    is_hip = False

    def __init__(self) -> None:
        self.devices: dict[int, int] = {}
        self.waits = 0

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
        cuda.copy(dst, src, size, kind, stream, _is_pinned(src))

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:  # noqa: N802
        cuda.submit(stream, lambda: ctypes.memset(ptr, value, size) and None, (Touch(ptr, size, True),))

    def streamSynchronize(self, stream: int) -> None:  # noqa: N802
        queue = cuda.queue_of(stream)
        cuda.wait(queue.last, queue.recording)
        self.waits += 1

    def pointerGetAttributes(self, ptr: int) -> Any:  # noqa: N802
        return SimpleNamespace(type=int(_is_pinned(ptr)), device=self.devices.get(ptr, cuda.device))

    def getDeviceProperties(self, device: int) -> Any:  # noqa: N802
        return {"name": b"A host in disguise"}

    def driverGetVersion(self) -> int:  # noqa: N802
        return 13010

    def runtimeGetVersion(self) -> int:  # noqa: N802
        return 13020

    def getDeviceCount(self) -> int:  # noqa: N802
        return len(cuda.used)


class FakeCupy:
    """The module ``cupy``; ``simt`` is the emulator's module, ``refuse_prebuilt`` a driver too old for it,
    and ``is_full`` a device without memory for kernels.

    Making one makes a new machine: what an earlier test left queued or taken is not there.
    """

    __version__ = "14.fake"
    ndarray = FakeArray
    dtype, float32 = np.dtype, np.float32

    def __init__(self, simt: Any) -> None:
        cuda.__init__()  # type: ignore[misc]
        _kept.clear()
        _pools.clear()
        self.pool, self.loaded, self.launches = MemoryPool(), [], []
        self.refuse_prebuilt = self.is_full = False
        self.runtime = Runtime()
        self.prepared: list[tuple[int, int]] = []
        self._allocate: Callable[[int], Any] = lambda nbytes: self.pool.malloc(nbytes)
        attribute = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        driver = SimpleNamespace(
            CUDADriverError=CUDADriverError,
            funcSetAttribute=lambda function, name, value: self.prepared.append((name, value)),
            occupancyMaxActiveBlocksPerMultiprocessor=lambda function, block, shared: RESIDENT_BLOCKS,
            **{attribute: 8},
        )
        memory = SimpleNamespace(
            MemoryPool=MemoryPool,
            MemoryPointer=MemoryPointer,
            UnownedMemory=UnownedMemory,
            OutOfMemoryError=OutOfMemoryError,
        )
        self.cuda = SimpleNamespace(
            memory=memory, runtime=self.runtime, driver=driver, Stream=Stream, Event=Event, Device=Device,
            Module=lambda: _Module(self, simt), Memory=Memory, UnownedMemory=UnownedMemory,
            MemoryPointer=MemoryPointer, get_current_stream=current_stream,
            get_elapsed_time=get_elapsed_time,
            alloc=lambda nbytes: self._allocate(nbytes), set_allocator=self._set_allocator,
            alloc_pinned_memory=_pinned,
        )  # fmt: skip

    def _set_allocator(self, allocator: Callable[[int], Any] | None) -> None:
        self._allocate = allocator or (lambda nbytes: MemoryPointer(Memory(nbytes), 0))

    def get_default_memory_pool(self) -> MemoryPool:
        return self.pool

    def get_default_pinned_memory_pool(self) -> Any:
        return SimpleNamespace(free_all_blocks=lambda: None)

    def taken(self, device: int = 1) -> int:
        """Return the bytes in use on a device, without cached ones; leaks are included."""
        return cuda.used[device] - sum(
            size * len(kept) for (at, _, size), kept in self.pool.free.items() if at == device
        )


class _Module:
    def __init__(self, cupy: FakeCupy, simt: Any) -> None:
        self.cupy, self.simt, self.device = cupy, simt, cuda.device

    def load(self, image: bytes) -> None:
        if image.startswith(b"prebuilt") and self.cupy.refuse_prebuilt:
            raise CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU")
        if self.cupy.is_full:
            raise CUDADriverError("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
        self.cupy.loaded.append(image)

    def get_function(self, name: str) -> _Function:
        return _Function(self, name)


class _Function:
    """A kernel. When queued, it has its arrays' addresses, but no references to the arrays."""

    def __init__(self, module: _Module, name: str) -> None:
        self.module, self.name, self.ptr = module, name, id(self)
        self.codes = module.simt.signature(name).split(",")

    def __call__(
        self,
        grid: Any,
        block: Any,
        arguments: Any,
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        # CuPy would shrink the grid and warn.
        assert not enable_cooperative_groups or grid[0] <= RESIDENT_BLOCKS
        if cuda.device != self.module.device:
            raise CUDADriverError("CUDA_ERROR_INVALID_HANDLE: a kernel of another device's module")
        given: list[Any] = []
        touches: list[Touch] = []
        for argument, code in zip(arguments, self.codes, strict=True):
            if isinstance(argument, np.ndarray):  # a struct, by value
                assert argument.size == 1
                assert code == f"s{argument.nbytes}"
                given.append(argument.tobytes())
                touches += _touches(argument.view(argument.dtype.metadata["struct"]))
                continue
            is_array = isinstance(argument, FakeArray)
            assert ("*" in code) == (is_array or type(argument) is np.uint64)
            given.append((argument.data.ptr, argument.shape, argument.dtype) if is_array else argument)
            if is_array:
                touches.append(argument.touch(not code.startswith("c*")))

        def run() -> None:
            arrays = [_argument(one) for one in given]
            together = enable_cooperative_groups
            self.module.simt.launch(self.name, grid[0], block[0], shared_mem, arrays, cooperative=together)

        self.module.cupy.launches.append(self.name)
        queue(run, *touches)


def _touches(struct: Any) -> list[Touch]:
    """Return the memory that a struct's pointers may reach: their blocks, from the pointers on."""
    touches = []
    for name, (kind, _) in struct.dtype.fields.items():
        if kind.fields is not None:
            touches += _touches(struct[name])
            continue
        code = (kind.metadata or {}).get("pointer")
        address = 0 if code is None else int(struct[name])
        block = cuda.block_of(Touch(address, 1, False)) if address else None
        if block is not None:
            left = block.begin + block.nbytes - address
            touches.append(Touch(address, left, not code.startswith("c*")))
    return touches


def _argument(given: Any) -> Any:
    if isinstance(given, tuple):
        return view_of(*given) if np.prod(given[1]) else np.empty(given[1], given[2])
    return None if type(given) is np.uint64 else given
