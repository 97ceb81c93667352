"""What can be known of the CuPy runtime without a GPU: CuPy has what it calls."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hopfuse.errors import BackendError

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'cupy-cuda13x[ctk]'")

import hopfuse as hf  # noqa: E402
from hopfuse.backends.cuda import found_device  # noqa: E402
from hopfuse.backends.cuda.cublas import load_library  # noqa: E402

CUDA = cupy.cuda
#: What is called, with the arguments' names as the docstrings of CuPy's compiled functions list them.
CALLS = {
    "cuda.runtime.memcpyAsync": ("dst", "src", "size", "kind", "stream"),
    "cuda.runtime.memsetAsync": ("ptr", "value", "size", "stream"),
    "cuda.runtime.streamSynchronize": ("stream",),
    "cuda.runtime.pointerGetAttributes": ("ptr",),
    "cuda.runtime.getDeviceProperties": ("device",),
    "cuda.runtime.getDeviceCount": (),
    "cuda.runtime.driverGetVersion": (),
    "cuda.runtime.runtimeGetVersion": (),
    "cuda.driver.funcSetAttribute": ("f", "attribute", "value"),
    "cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor": ("func", "blockSize", "dynamicSMemSize"),
    "cuda.driver.launchCooperativeKernel": ("f",),
    "cuda.Module.load": ("cubin",),
    "cuda.Module.get_function": ("name",),
    "cuda.UnownedMemory": ("ptr", "size", "owner", "device_id"),
    "cuda.MemoryPointer": ("mem", "offset"),
    "cuda.Memory": ("size",),
    "cuda.MemoryPool.free_bytes": (),
    "cuda.MemoryPool.used_bytes": (),
    "cuda.MemoryPool.get_limit": (),
    "cuda.MemoryPool.free_all_blocks": (),
    "cuda.alloc_pinned_memory": ("size",),
    "cuda.alloc": ("size",),
    "cuda.Graph.launch": ("stream",),
    "cuda.Stream.begin_capture": (),
    "cuda.Stream.end_capture": (),
    "cuda.Stream.wait_event": ("event",),
    "cuda.Stream.record": (),
    "cuda.Event.synchronize": (),
    "cuda.get_elapsed_time": ("start_event", "end_event"),
    "cuda.set_allocator": ("allocator",),
    "cuda.Stream.from_external": ("obj",),
    "cuda.get_current_stream": (),
    "get_default_memory_pool": (),
    "get_default_pinned_memory_pool": (),
    "from_dlpack": ("array",),
}
NAMES = [
    "ndarray",
    "ndarray.data",
    "dtype",
    "cuda.Event",
    "cuda.MemoryPointer.__add__",
    "cuda.MemoryPointer.mem",
    "cuda.Device.mem_info",
    "cuda.Device.compute_capability",
    "cuda.Stream.null",
    "cuda.Stream.ptds",
    "cuda.driver.CUDADriverError",
    "cuda.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "cuda.runtime.CUDARuntimeError",
    "cuda.runtime.memcpyHostToDevice",
    "cuda.runtime.memcpyDeviceToHost",
    "cuda.runtime.memcpyDeviceToDevice",
    "cuda.runtime.is_hip",
]


def found(name: str) -> Any:
    value: Any = cupy
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.fixture(scope="module")
def no_device() -> None:
    if CUDA.is_available():
        pytest.skip("this machine has a CUDA device")


@pytest.mark.parametrize("name", [*CALLS, *NAMES])
def test_cupy_has_what_the_runtime_uses(name: str) -> None:
    assert found(name) is not None


@pytest.mark.parametrize("name", CALLS)
def test_cupy_takes_the_arguments(name: str) -> None:
    """Compiled functions have their signature as the first line of the docstring, where they have one at all."""
    first = str(found(name).__doc__).strip().split("\n")[0]
    listed = first[first.find("(") + 1 : first.find(")")] if "(" in first else ""
    given = [part.split("=")[0].split()[-1] for part in listed.split(",") if part.strip()]
    if first.startswith(name.rsplit(".", 1)[-1]) or f"{name.rsplit('.', 1)[-1]}(" in first:
        assert [argument for argument in given if argument not in ("self", "cls")][: len(CALLS[name])] == [*CALLS[name]]


def test_no_memory_is_pythons_memory_error() -> None:
    """``CupyRuntime`` catches it by that name."""
    assert issubclass(found("cuda.memory.OutOfMemoryError"), MemoryError)


def test_the_memory_kinds_are_those_of_the_cuda_runtime() -> None:
    """``CupyRuntime`` takes 0 for memory that CUDA does not know."""
    assert found("cuda.runtime.memoryTypeUnregistered") == 0


def test_cublas_has_what_the_product_calls() -> None:
    try:
        library = load_library()
    except BackendError as error:
        pytest.skip(f"cuBLAS is not installed: {error}")
    for name in ("Create_v2", "SetStream_v2", "SetWorkspace_v2", "SetMathMode", "Sgemm_v2"):
        assert isinstance(getattr(library, f"cublas{name}"), ctypes._CFuncPtr)


def test_without_a_device_the_reason_is_clear(no_device: None) -> None:
    with pytest.raises(BackendError, match=r"driver|device") as caught:
        found_device.make_backend()
    assert "backend='cpu'" in str(caught.value) or "pip install" in str(caught.value)
    with pytest.raises(BackendError) as again:
        hf.calibrate(hf.Hits([[1]], [[1.0]]), backend="cuda")
    assert str(again.value) == str(caught.value)
    report = hf.backend_info()
    assert report["auto"] == "cpu"
    assert report["backends"]["cuda"]["error"] == str(caught.value)
