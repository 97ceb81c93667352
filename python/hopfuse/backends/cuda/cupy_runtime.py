"""The runtime of a real GPU: CuPy's memory pool, streams and graphs, kernels of :mod:`.kernel_code`, and cuBLAS."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..cancellation import check_cancelled
from . import cupy_interop as interop
from .arguments import Arguments
from .cublas import WORKSPACE_BYTES, Cublas
from .cupy_capture import Capture, CupyRecording, as_bytes, host_address, record
from .cupy_errors import failed, is_no_memory, no_room, translated
from .cupy_events import LaunchEvents
from .cupy_modules import CupyModules
from .cupy_staging import STAGED_BYTES, Staging
from .kernel_code import KernelCode
from .layout import Layout, layout_of
from .recording_memory import RecordingMemory
from .runtime import DeviceArray, LaunchTime

T = TypeVar("T")

_NULL = np.uint64(0)
_PAGEABLE = 0  # cudaMemoryTypeUnregistered
#: The most bytes between arrays that are downloaded in one copy, with those between them.
MOST_BETWEEN = 1 << 16

#: Bytes that a multiprocessor gathers from the L2 cache in a cycle (on an H200, 3.8 TB/s).
_L2_BYTES_PER_CYCLE = 16


def _l2_speedup(attributes: dict[str, int]) -> float:
    """Return the bandwidth of the L2 cache over that of the memory, at least 1, from clocks (kHz) and widths (bits)."""
    memory = 2 * attributes["MemoryClockRate"] * attributes["GlobalMemoryBusWidth"] / 8
    l2 = _L2_BYTES_PER_CYCLE * attributes["ClockRate"] * attributes["MultiProcessorCount"]
    return max(1.0, l2 / memory) if memory else 1.0  # some drivers do not tell


class CupyRuntime:
    """The CUDA device that is current at construction, for all threads. Work is queued on CuPy's current stream.

    Parameters
    ----------
    code : callable
        Returns the kernels' code for a compute capability (90 for 9.0).
    """

    name = "cuda"

    def __init__(self, code: Callable[[int], KernelCode]) -> None:
        cupy = import_module("cupy")
        self._cupy: Any = cupy
        self._number = int(cupy.cuda.Device().id)
        self.code = code(int(self._device.compute_capability))
        attributes = self._device.attributes
        self.l2_bytes, self.l2_speedup = int(attributes["L2CacheSize"]), _l2_speedup(attributes)
        self.cooperative = bool(attributes["CooperativeLaunch"])
        self._multiprocessors = int(attributes["MultiProcessorCount"])
        self._modules = CupyModules(cupy, self.code)
        self._cublas = Cublas(self.trim)
        self._local = threading.local()
        self._idle: list[Staging] = []
        #: Types of arguments that CuPy passes as they are.
        self._plain = {np.int32, np.int64, np.float32, np.float64, cupy.ndarray}

    @property
    def fixed(self) -> bool:
        return getattr(self._local, "capture", None) is not None

    @property
    def _device(self) -> Any:
        """A new Device to enter; one object is not thread-safe, because it remembers the previous device."""
        return self._cupy.cuda.Device(self._number)

    @property
    def _capture(self) -> Capture | None:
        """Return the capture that this thread's allocations and uploads belong to, if any."""
        capture: Capture | None = getattr(self._local, "capture", None)
        return None if capture is None or getattr(self._local, "resident", False) else capture

    # ---- Memory --------------------------------------------------------------------------------------------------

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        capture, sides = self._capture, shape if isinstance(shape, tuple) else (int(shape),)
        with self._device:
            if capture is not None:
                return self._array(sides, dtype, capture.allocate)
            return self._side_by_side(layout_of((sides, dtype)))[1][0]

    def empty_all(self, arrays: Sequence[tuple[tuple[int, ...], DTypeLike]]) -> list[DeviceArray]:
        if self._capture is not None:  # whose results are redirected one by one
            return [self.empty(*array) for array in arrays]
        with self._device:
            return self._side_by_side(layout_of(*arrays))[1]

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        array = self.empty(shape, dtype)
        if array.nbytes:
            with self._device, translated(self._cupy, "clearing memory"):
                self._cupy.cuda.runtime.memsetAsync(array.data.ptr, 0, array.nbytes, self._stream())
        return array

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        return self.upload_all([array])[0]

    def upload_all(self, arrays: Sequence[NDArray[Any]]) -> list[DeviceArray]:
        capture = self._capture
        if not arrays:
            return []
        with self._device:
            if capture is not None:
                allocate = capture.allocate_constant
                return [capture.upload(array, lambda given: self._copied(given, allocate)) for array in arrays]
            layout = layout_of(*((array.shape, array.dtype) for array in arrays))
            if layout.nbytes > STAGED_BYTES:
                return [self._copied(array, self._cupy.cuda.alloc) for array in arrays]
            return self._staged(layout, arrays)

    def download(self, array: DeviceArray) -> NDArray[Any]:
        out = np.empty(array.shape, array.dtype)
        self.copy(out, array)
        return out

    def download_all(self, arrays: Sequence[DeviceArray]) -> list[NDArray[Any]]:
        block = _block_of(arrays)
        if block is None or self._capture is not None:
            return [self.download(array) for array in arrays]
        begin, end = block
        held = np.empty(end - begin, np.uint8)
        with self._device, translated(self._cupy, "a download"):
            runtime, stream = self._cupy.cuda.runtime, self._stream()
            runtime.memcpyAsync(host_address(held), begin, held.nbytes, runtime.memcpyDeviceToHost, stream)
            runtime.streamSynchronize(stream)
        places = [_address(array) - begin if array.nbytes else 0 for array in arrays]
        return [np.ndarray(array.shape, array.dtype, held, at) for array, at in zip(arrays, places, strict=True)]

    def copy(self, target: Any, source: Any) -> None:
        if target.nbytes != source.nbytes:
            raise ValueError(f"cannot copy {source.nbytes} bytes into {target.nbytes}")
        to_host, from_host = isinstance(target, np.ndarray), isinstance(source, np.ndarray)
        capture = self._capture
        if to_host and capture is not None:
            raise capture.refuse("a copy to the host")
        if not source.nbytes:
            return
        if to_host and from_host:
            as_bytes(target)[:] = as_bytes(source)
            return
        with self._device, translated(self._cupy, "a copy"):
            if from_host and capture is not None:
                self._keep_pinned(capture, source)
            runtime, stream = self._cupy.cuda.runtime, self._stream()
            onto = runtime.memcpyHostToDevice if from_host else runtime.memcpyDeviceToDevice
            kind = runtime.memcpyDeviceToHost if to_host else onto
            stays = from_host and self._is_pinned(host_address(source))
            runtime.memcpyAsync(_address(target), _address(source), source.nbytes, kind, stream)
            if to_host or (from_host and not stays):
                runtime.streamSynchronize(stream)

    def pinned(self, nbytes: int) -> NDArray[np.uint8]:
        with self._device, translated(self._cupy, f"allocating {nbytes:,} bytes of pinned host memory"):
            memory = self._cupy.cuda.alloc_pinned_memory(max(1, nbytes))
        return np.frombuffer(memory, np.uint8, nbytes)

    def free_bytes(self) -> int:
        with self._device, translated(self._cupy, "asking for free memory"):
            pool = self._cupy.get_default_memory_pool()
            free = int(self._device.mem_info[0]) + int(pool.free_bytes())
            limit = int(pool.get_limit())
            return min(free, max(0, limit - int(pool.used_bytes()))) if limit else free

    def trim(self) -> None:
        with self._device:
            self._cupy.get_default_memory_pool().free_all_blocks()
            self._cupy.get_default_pinned_memory_pool().free_all_blocks()

    def _array(self, shape: int | tuple[int, ...], dtype: DTypeLike, allocate: Callable[[int], Any]) -> DeviceArray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if not nbytes:
            return self._cupy.ndarray(shape, dtype)
        pointer = self._allocated(nbytes, allocate)
        return self._cupy.ndarray(shape, dtype, pointer)

    def _allocated(self, nbytes: int, allocate: Callable[[int], Any]) -> Any:
        """Allocate; if that fails, free everything possible and try once more.

        A pool frees its own blocks before it fails, but not for another pool, nor for a recording, nor at its limit.
        """
        try:
            return allocate(nbytes)
        except (MemoryError, self._cupy.cuda.runtime.CUDARuntimeError) as error:
            if not is_no_memory(error):
                raise failed("an allocation", error) from error
        gc.collect()  # frees recordings and arrays in reference cycles
        self.trim()
        try:
            return allocate(nbytes)
        except (MemoryError, self._cupy.cuda.runtime.CUDARuntimeError) as error:
            if not is_no_memory(error):
                raise failed("an allocation", error) from error
            raise no_room(nbytes, self.free_bytes(), int(self._device.mem_info[1])) from error

    def _side_by_side(self, layout: Layout) -> tuple[int, list[DeviceArray]]:
        """Allocate arrays in one block; return its address too."""
        block = self._allocated(max(1, layout.nbytes), self._cupy.cuda.alloc)
        ndarray = self._cupy.ndarray
        return block.ptr, [ndarray(slot.shape, slot.dtype, block + slot.begin) for slot in layout.slots]

    def _staged(self, layout: Layout, arrays: Sequence[NDArray[Any]]) -> list[DeviceArray]:
        """Upload small arrays in one copy from pinned memory, which does not wait for the device."""
        address, there = self._side_by_side(layout)
        if layout.nbytes:
            with translated(self._cupy, "an upload"):
                try:
                    staging = self._idle.pop()
                except IndexError:
                    staging = Staging(self._cupy, self.pinned(STAGED_BYTES))
                try:
                    staging.copy(address, layout, arrays)
                finally:
                    self._idle.append(staging)
        return there

    def _copied(self, array: NDArray[Any], allocate: Callable[[int], Any]) -> DeviceArray:
        out = self._array(array.shape, array.dtype, allocate)
        if array.nbytes:
            given = np.ascontiguousarray(array)
            runtime, stream = self._cupy.cuda.runtime, self._stream()
            with translated(self._cupy, "an upload"):
                address = host_address(given)
                runtime.memcpyAsync(out.data.ptr, address, given.nbytes, runtime.memcpyHostToDevice, stream)
                # ``given`` may be gone on return, and CUDA does not guarantee that the copy has read it by then.
                runtime.streamSynchronize(stream)
        return out

    def _is_pinned(self, address: int) -> bool:
        return int(self._cupy.cuda.runtime.pointerGetAttributes(address).type) != _PAGEABLE

    def _keep_pinned(self, capture: Capture, source: NDArray[Any]) -> None:
        """Keep alive the host memory that a recorded copy reads at every replay; it must be pinned."""
        if not self._is_pinned(host_address(source)):
            raise capture.refuse("a copy from memory not allocated by pinned()")
        if capture.is_recording:
            capture.host.append(source)

    def _stream(self) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

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
        driver = self._cupy.cuda.driver
        with self._device:
            function = self._modules.function(kernel, shared)
            plain = self._plain
            given = tuple([one if type(one) in plain else self._argument(one) for one in arguments])
            try:
                if getattr(self._local, "events", None) is None:
                    function((grid,), (block,), given, shared, None, cooperative)
                else:
                    with self._timing(kernel):
                        function((grid,), (block,), given, shared, None, cooperative)
            except driver.CUDADriverError as error:
                raise failed(f"{kernel} of {grid} blocks of {block} threads", error) from error

    def resident_blocks(self, kernel: str, block: int, shared: int) -> int:
        with self._device, translated(self._cupy, f"asking how many blocks of {kernel} run at once"):
            function = self._modules.function(kernel, shared)
            ask = self._cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
            return int(ask(function.ptr, block, shared)) * self._multiprocessors

    @contextmanager
    def timed(self) -> Iterator[list[LaunchTime]]:
        events, times = LaunchEvents(self._cupy), list[LaunchTime]()
        self._local.events = events
        try:
            yield times
        finally:
            self._local.events = None
        with self._device, translated(self._cupy, "timing kernels"):
            times.extend(events.read())

    def _timing(self, kernel: str) -> AbstractContextManager[None]:
        """Return a context that times a launch of this thread, which is timed; recorded launches have no times."""
        events: LaunchEvents = self._local.events
        capture: Capture | None = getattr(self._local, "capture", None)
        return nullcontext() if capture is not None and capture.is_recording else events.around(kernel)

    def _argument(self, value: Any) -> Any:
        """Convert a kernel argument; Python numbers are refused, because CuPy would pass them as 64-bit ones."""
        if isinstance(value, Arguments):
            return value.packed(_address)  # CuPy passes a zero-dimensional NumPy array by value
        if value is None:
            return _NULL
        if isinstance(value, np.generic | self._cupy.ndarray):
            return value
        raise TypeError(
            f"a kernel argument must be a device array, NumPy scalar, Arguments or None, got {type(value).__name__}"
        )

    def matmul(self, a: DeviceArray, b: DeviceArray, out: DeviceArray) -> None:
        (m, d), n = a.shape, b.shape[0]
        # In a capture, from the recording's own memory, because several recordings may run at once.
        workspace = None if self._capture is None else self.empty(WORKSPACE_BYTES, np.uint8)
        if m and n:
            with self._device:
                held = None if workspace is None else workspace.data.ptr
                self._cublas.product(a.data.ptr, b.data.ptr, out.data.ptr, (m, n, d), self._stream(), held)

    def recording_memory(self) -> RecordingMemory:
        # Not from a pool: CuPy 14.2 never frees the free blocks of a dropped pool. Blocks end with cudaFree, which
        # waits for the device, so no replay is still using them.
        return RecordingMemory(self._cupy.cuda.Memory, attrgetter("ptr"))

    def capture(self, work: Callable[[], T], memory: RecordingMemory | None = None) -> tuple[CupyRecording, T]:
        if self.fixed:
            raise RuntimeError("captures cannot be nested")
        chosen = self.recording_memory() if memory is None else memory
        with self._device, self._inside_capture(chosen) as capture, translated(self._cupy, "recording a CUDA graph"):
            try:
                return record(self._cupy, capture, work)
            except BaseException:
                capture.tape.abandon()  # the traceback keeps arrays alive, but their memory is needed now
                raise

    def side_by_side(self, arrays: Sequence[DeviceArray], begins: Sequence[int], nbytes: int) -> DeviceArray:
        capture = self._capture
        assert capture is not None
        places = [(_address(array), int(array.nbytes)) for array in arrays]
        with self._device:
            block = self._array((nbytes,), np.uint8, lambda size: capture.allocate_results(places, begins, size))
        for begin, array, (address, size) in zip(begins, arrays, places, strict=True):
            if address != _address(block) + begin:
                self.copy(block[begin : begin + size], array)
        return block

    def resident(self) -> AbstractContextManager[None]:
        return self._resident()

    @contextmanager
    def _resident(self) -> Iterator[None]:
        """Allocate outside any capture; wait at the end, because other streams will read the arrays."""
        capture = getattr(self._local, "capture", None)
        if capture is not None and capture.is_recording:
            raise capture.refuse("an upload of a graph or corpus")
        outer = getattr(self._local, "resident", False)
        self._local.resident = True
        try:
            yield
            with self._device, translated(self._cupy, "an upload"):
                self._cupy.cuda.runtime.streamSynchronize(self._stream())
        finally:
            self._local.resident = outer

    @contextmanager
    def _inside_capture(self, memory: RecordingMemory) -> Iterator[Capture]:
        self._local.capture = Capture(self._cupy, memory, self.recording_memory())
        try:
            yield self._local.capture
        finally:
            self._local.capture = None

    # ---- Other libraries' arrays ---------------------------------------------------------------------------------

    def is_device_array(self, array: Any) -> bool:
        return interop.is_device_array(array)

    def adopt(self, array: Any) -> DeviceArray:
        with self._device:
            return interop.adopt(self._cupy, self._number, array)

    def export(self, array: DeviceArray, like: Any) -> Any:
        with self._device:
            return interop.export(self._cupy, array, like)

    @contextmanager
    def _on_stream_of(self, array: Any) -> Iterator[None]:
        with self._device, interop.on_stream_of(self._cupy, array):
            yield

    def on_stream_of(self, array: Any) -> AbstractContextManager[None]:
        return self._on_stream_of(array)

    # ---- Description ---------------------------------------------------------------------------------------------

    def explain(self) -> dict[str, Any]:
        runtime = self._cupy.cuda.runtime
        with self._device, translated(self._cupy, "asking for the device's properties"):
            free, total = self._device.mem_info
            return {
                "device": device_name(self._cupy, self._number),
                "compute_capability": f"{self.code.capability / 10}",
                "driver": f"CUDA {_release(runtime.driverGetVersion())}",
                "runtime": f"CUDA {_release(runtime.runtimeGetVersion())}",
                "cupy": str(self._cupy.__version__),
                "total_bytes": int(total),
                "free_bytes": int(free),
                "stream_safe": True,
                "cooperative": self.cooperative,
                "kernels": self._modules.origins(),
                "kernel_cache": self.code.cache.problem or str(self.code.cache.folder),
            }


def device_name(cupy: Any, number: int) -> str:
    name = cupy.cuda.runtime.getDeviceProperties(number)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def _release(version: int) -> str:
    """Format a CUDA release: 13.2 for 13020."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _address(array: Any) -> int:
    return host_address(array) if isinstance(array, np.ndarray) else int(array.data.ptr)


def _block_of(arrays: Sequence[Any]) -> tuple[int, int] | None:
    """Return the addresses of the first byte and of the end if the arrays are side by side in one allocation."""
    memory, begins, ends, nbytes = None, list[int](), list[int](), 0
    for array in arrays:
        if array.nbytes:
            pointer = array.data
            if memory is not None and pointer.mem is not memory:
                return None
            memory = pointer.mem
            begins.append(int(pointer.ptr))
            ends.append(begins[-1] + array.nbytes)
            nbytes += array.nbytes
    if len(begins) < 2 or memory is None:
        return None
    begin, end = min(begins), max(ends)
    return (begin, end) if end - begin <= nbytes + MOST_BETWEEN else None
