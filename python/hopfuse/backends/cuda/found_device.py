"""Find this machine's GPU and make the backend for it, or explain why there is none."""

from __future__ import annotations

import hashlib
import importlib.metadata
from importlib import import_module
from typing import Any

from ...errors import BackendError
from ..first_use import INSTALL, no_cupy
from .compatibility import check_driver
from .cupy_errors import first_line
from .device_ops import DeviceOps
from .kernel_cache import KernelCache, cache_folder
from .kernel_code import KernelCode
from .kernel_compiler import FoundNvrtc
from .kernel_sources import KernelSources, find_sources

#: The lowest compute capability that the kernels are compiled for.
MIN_CAPABILITY = 75


def make_backend() -> DeviceOps:
    """Return the ops of the current CUDA device; raise BackendError if something is missing."""
    cupy = _import_cupy()
    _check_device(cupy)
    from .cupy_runtime import CupyRuntime

    driver = int(cupy.cuda.runtime.driverGetVersion())
    check_driver(driver)
    sources, cache = find_sources(), KernelCache(cache_folder(_version()))

    def code(capability: int) -> KernelCode:
        return KernelCode(sources, FoundNvrtc(capability, driver), capability, cache, driver)

    return DeviceOps(CupyRuntime(code))


class SelfTestMark:
    """A persistent record that this installation's kernels passed the quick self-test on this device."""

    def __init__(self, sources: KernelSources, cache: KernelCache, *where: str) -> None:
        identity = repr((sources.hash, *where))
        self._cache, self._key = cache, f"selftest-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"

    @classmethod
    def of(cls, backend: Any) -> SelfTestMark:
        found = backend.runtime
        about = found.explain()
        where = (_version(), about["device"], about["driver"], about["runtime"], about["cupy"])
        return cls(found.code.sources, found.code.cache, *where)

    def is_set(self) -> bool:
        return self._cache.get(self._key) is not None

    def set(self) -> None:
        self._cache.put(self._key, b"passed")


def _import_cupy() -> Any:
    missing = no_cupy()
    if missing is not None:
        raise missing
    try:
        return import_module("cupy")
    except ImportError as error:
        raise BackendError(
            "unavailable",
            "backend",
            "backend='cuda' needs CuPy, which cannot be imported ({error}); {install}",
            error=first_line(error),
            install=INSTALL,
        ) from error


def _check_device(cupy: Any) -> None:
    runtime = cupy.cuda.runtime
    if runtime.is_hip:
        raise BackendError(
            "unavailable", "backend", "backend='cuda' needs CuPy for CUDA, but the installed one is for ROCm"
        )
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise _no_device(runtime, str(error)) from error
    if not count:
        raise _no_device(runtime, "no devices found")
    device = cupy.cuda.Device()
    if int(device.compute_capability) < MIN_CAPABILITY:
        raise BackendError(
            "unavailable",
            "backend",
            "CUDA device {id} has compute capability {given}; the kernels need {allowed} (Turing) or later. Choose "
            "another with CUDA_VISIBLE_DEVICES, or use backend='cpu'",
            id=device.id,
            given=int(device.compute_capability) / 10,
            allowed=MIN_CAPABILITY / 10,
        )


def _no_device(runtime: Any, said: str) -> BackendError:
    driver, needed = int(runtime.driverGetVersion()) // 1000, int(runtime.runtimeGetVersion()) // 1000
    if not driver:
        return BackendError(
            "unavailable",
            "backend",
            "backend='cuda' needs the NVIDIA driver, which was not found ({said}); install it, or use backend='cpu'",
            said=said,
        )
    if driver < needed:
        return BackendError(
            "version",
            "backend",
            "the driver supports CUDA {driver}, but the installed CuPy is for CUDA {needed} ({said}); {install}",
            driver=driver,
            needed=needed,
            said=said,
            install=INSTALL,
        )
    return BackendError(
        "unavailable",
        "backend",
        "no usable CUDA device ({said}); check CUDA_VISIBLE_DEVICES, or use backend='cpu'",
        said=said,
    )


def _version() -> str:
    return importlib.metadata.version("hopfuse")
