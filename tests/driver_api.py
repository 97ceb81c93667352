"""The driver API through ctypes, for tests of the emulated driver: a context of a device, and short calls in it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hopfuse_simt import SimtDriver

SOURCE = Path(__file__).parent / "simt" / "cuda" / "launches.cu"

#: Errors that tests expect, by name without the prefix.
CODES = SimpleNamespace(
    INVALID_VALUE=1, OUT_OF_MEMORY=2, NOT_INITIALIZED=3, INVALID_DEVICE=101, INVALID_IMAGE=200, INVALID_CONTEXT=201,
    NO_BINARY_FOR_GPU=209, INVALID_HANDLE=400, ILLEGAL_STATE=401, NOT_FOUND=500, NOT_READY=600, ILLEGAL_ADDRESS=700,
    LAUNCH_TIMEOUT=702, CONTEXT_IS_DESTROYED=709, ILLEGAL_INSTRUCTION=715, LAUNCH_FAILED=719,
    COOPERATIVE_LAUNCH_TOO_LARGE=720, NOT_SUPPORTED=801, STREAM_CAPTURE_UNSUPPORTED=900,
    STREAM_CAPTURE_INVALIDATED=901, STREAM_CAPTURE_MERGE=902, STREAM_CAPTURE_UNMATCHED=903,
    STREAM_CAPTURE_UNJOINED=904, STREAM_CAPTURE_ISOLATION=905, STREAM_CAPTURE_IMPLICIT=906, CAPTURED_EVENT=907,
    STREAM_CAPTURE_WRONG_THREAD=908,
)  # fmt: skip
BLOCKING, NON_BLOCKING = 0, 1
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
RELEASE_THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
SHARED_ATTRIBUTE = 8


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = [
        ("allocation", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("device", ctypes.c_int),
        ("security", ctypes.c_void_p), ("most", ctypes.c_size_t), ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    ]  # fmt: skip


class Api:
    """Calls in the primary context of a device; a call that fails raises a DriverError."""

    def __init__(self, driver: SimtDriver, device: int) -> None:
        self.driver, self.device, self.call = driver, driver.devices[device], driver.call
        self.call("cuInit", 0)
        self.context = self.made("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxPushCurrent_v2", self.context)
        self.functions: dict[str, Any] = {}

    def made(self, entry: str, *arguments: Any) -> ctypes.c_void_p:
        """Call an entry point whose first argument is the handle that it makes."""
        handle = ctypes.c_void_p()
        self.call(entry, ctypes.byref(handle), *arguments)
        return handle

    def code(self, entry: str, *arguments: Any) -> int:
        return int(getattr(self.driver.library, entry)(*arguments))

    def kinds(self) -> list[str]:
        """Return the kinds of what was found since it was last asked."""
        found = [finding.kind for finding in self.driver.findings]
        self.driver.findings.clear()
        return found

    # ---- Memory --------------------------------------------------------------------------------------------------

    def alloc(self, nbytes: int) -> int:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        return pointer.value

    def free(self, pointer: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def pool(self, most: int = 0) -> ctypes.c_void_p:
        properties = PoolProperties(allocation=1, location=1, device=self.device.ordinal, most=most)
        return self.made("cuMemPoolCreate", ctypes.byref(properties))

    def pool_alloc(self, pool: Any, nbytes: int, stream: Any) -> int:
        pointer = ctypes.c_uint64()
        self.call("cuMemAllocFromPoolAsync", ctypes.byref(pointer), ctypes.c_size_t(nbytes), pool, stream)
        return pointer.value

    def pool_free(self, pointer: int, stream: Any) -> None:
        self.call("cuMemFreeAsync", ctypes.c_uint64(pointer), stream)

    def attribute(self, pool: Any, name: int) -> int:
        value = ctypes.c_uint64()
        self.call("cuMemPoolGetAttribute", pool, name, ctypes.byref(value))
        return value.value

    def pinned(self, shape: Any, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        pointer = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes), 0)
        assert pointer.value is not None
        return np.frombuffer((ctypes.c_char * nbytes).from_address(pointer.value), dtype).reshape(shape)

    def free_pinned(self, array: np.ndarray[Any, Any]) -> None:
        self.call("cuMemFreeHost", ctypes.c_void_p(array.ctypes.data))

    def up(self, pointer: int, array: np.ndarray[Any, Any], stream: Any) -> None:
        source = ctypes.c_void_p(array.ctypes.data)
        self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(pointer), source, ctypes.c_size_t(array.nbytes), stream)

    def down(self, array: np.ndarray[Any, Any], pointer: int, stream: Any) -> None:
        target = ctypes.c_void_p(array.ctypes.data)
        self.call("cuMemcpyDtoHAsync_v2", target, ctypes.c_uint64(pointer), ctypes.c_size_t(array.nbytes), stream)

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        pointers = ctypes.c_uint64(target), ctypes.c_uint64(source)
        self.call("cuMemcpyDtoDAsync_v2", *pointers, ctypes.c_size_t(nbytes), stream)

    def clear(self, pointer: int, value: int, nbytes: int, stream: Any) -> None:
        self.call("cuMemsetD8Async", ctypes.c_uint64(pointer), value, ctypes.c_size_t(nbytes), stream)

    def filled(self, values: Any) -> int:
        """Return new memory with these values, in order with everything."""
        array = np.ascontiguousarray(values)
        pointer, stream = self.alloc(array.nbytes), self.stream()
        self.up(pointer, array, stream)
        self.wait(stream)
        self.call("cuStreamDestroy_v2", stream)
        return pointer

    # ---- Streams, events, captures -------------------------------------------------------------------------------

    def stream(self, flags: int = NON_BLOCKING) -> ctypes.c_void_p:
        return self.made("cuStreamCreate", flags)

    def wait(self, stream: Any = None) -> None:
        self.call("cuStreamSynchronize", stream)

    def event(self, *streams: Any, flags: int = 0) -> ctypes.c_void_p:
        """Return a new event, recorded on a stream if there is one."""
        event = self.made("cuEventCreate", flags)
        for stream in streams:
            self.call("cuEventRecord", event, stream)
        return event

    def after(self, stream: Any, event: Any) -> None:
        self.call("cuStreamWaitEvent", stream, event, 0)

    def order(self, first: Any, second: Any) -> None:
        """Let what the second stream gets come after what the first has."""
        self.after(second, self.event(first))

    def begin(self, stream: Any, mode: int = GLOBAL) -> None:
        self.call("cuStreamBeginCapture_v2", stream, mode)

    def end(self, stream: Any) -> ctypes.c_void_p:
        graph = ctypes.c_void_p()
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        return graph

    def instantiate(self, graph: Any) -> ctypes.c_void_p:
        return self.made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))

    # ---- Kernels -------------------------------------------------------------------------------------------------

    def load(self, image: bytes | None = None) -> ctypes.c_void_p:
        if image is None:
            image = self.driver.images([SOURCE])[SOURCE.name]
        return self.made("cuModuleLoadData", image)

    def function(self, name: str) -> ctypes.c_void_p:
        """Return a function of launches.cu, loaded."""
        if name not in self.functions:
            module = self.functions.setdefault("", self.load())
            self.functions[name] = self.made("cuModuleGetFunction", module, name.encode())
            value = ctypes.c_int()
            self.call("cuFuncGetAttribute", ctypes.byref(value), 0, self.functions[name])
        return self.functions[name]

    def launch(
        self, name: Any, grid: int, block: int, arguments: Any, stream: Any, shared: int = 0, *, together: bool = False
    ) -> None:
        """Launch a function by its name, or by its handle. A Python int is a device pointer."""
        function = self.function(name) if isinstance(name, str) else name
        held = [ctypes.c_uint64(one) if isinstance(one, int) else one for one in arguments]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*[ctypes.addressof(one) for one in held])
        sizes = (grid, 1, 1, block, 1, 1, shared, stream, pointers)
        if together:
            self.call("cuLaunchCooperativeKernel", function, *sizes)
        else:
            self.call("cuLaunchKernel", function, *sizes, None)

    def copies(self, source: int, target: int, count: int, stream: Any) -> None:
        """Launch a kernel that copies float32 numbers."""
        self.launch("copies", -(-count // 32), 32, [source, target, ctypes.c_int(count)], stream)


@contextmanager
def context(driver: SimtDriver, device: int) -> Iterator[Api]:
    """A context of a device, and a driver without memories of the past; all is gone afterwards."""
    driver.clear()
    api = Api(driver, device)
    try:
        yield api
    finally:
        while driver.library.cuCtxPopCurrent_v2(None) == 0:
            pass
        driver.library.cuDevicePrimaryCtxRelease_v2(device)
        driver.devices[device].restore()
        driver.noop = False
        driver.clear()
