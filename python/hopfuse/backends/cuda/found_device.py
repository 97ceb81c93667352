"""Find this machine's GPU and make the backend for it, or explain why there is none."""

from __future__ import annotations

import hashlib
import importlib.metadata
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ... import _native
from ...errors import BackendError
from ..driver import no_device
from .device_ops import DeviceOps
from .interop import ordinal_of
from .kernel_cache import KernelCache, cache_folder
from .kernel_code import KernelCode
from .kernel_compiler import FoundNvrtc
from .kernel_sources import find_sources
from .runtime import Runtime

#: The lowest compute capability that the kernels are compiled for.
MIN_CAPABILITY = 75

#: Code for a driver, its origin, and what gives other code if the driver refuses it, by the reason.
Image = tuple[bytes, str, Callable[[str], "Image"] | None]


class CudaOps(DeviceOps):
    """The ops of a CUDA device, with the code of its kernels.

    Parameters
    ----------
    runtime : Runtime
    code : KernelCode
    at : callable, optional
        Returns the ops of another device by its number; without it, calls use only this device.
    """

    def __init__(self, runtime: Runtime, code: KernelCode, at: Callable[[int], Any] | None) -> None:
        super().__init__(runtime)
        self.code, self._at, self._ordinal = code, at, runtime.device.ordinal
        self._by_number: dict[int, DeviceOps] = {}

    @property
    def device(self) -> DeviceOps:
        """The ops of the device that is current on this thread; this one if none is."""
        return self._number(_native.current_device())

    def holding(self, array: Any) -> DeviceOps:
        """Return the ops of the device that an array is on."""
        return self._number(ordinal_of(self._device, array))

    def _number(self, number: int | None) -> DeviceOps:
        if number is None or number == self._ordinal or self._at is None:
            return self
        found = self._by_number.get(number)
        if found is None:
            found = self._by_number[number] = self._at(number)
        return found

    def explain(self) -> dict[str, Any]:
        cache = self.code.cache
        return {**super().explain(), "ordinal": self._ordinal, "kernel_cache": cache.problem or str(cache.folder)}


def make_backend(ordinal: int | None, at: Callable[[int], Any] | None = None) -> CudaOps:
    """Return the ops of a CUDA device; raise BackendError if it cannot be used.

    Parameters
    ----------
    ordinal : int, optional
        The device's number; by default the current device of this thread, else 0.
    at : callable, optional
        Returns the ops of another device by its number; without it, calls use only this device.
    """
    driver = _native.driver_version()
    count = _native.count_devices()
    if not count:
        raise no_device("the driver finds none")
    number = (_native.current_device() or 0) if ordinal is None else ordinal
    _, capability = _native.device_summary(number)
    if capability < MIN_CAPABILITY:
        raise BackendError(
            "unavailable",
            "backend",
            "CUDA device {id} has compute capability {given}; the kernels need {allowed} (Turing) or later. Choose "
            "another with CUDA_VISIBLE_DEVICES, or use backend='cpu'",
            id=number,
            given=capability / 10,
            allowed=MIN_CAPABILITY / 10,
        )
    compiler, cache = FoundNvrtc(capability, driver), KernelCache(cache_folder(_version()))
    code = KernelCode(find_sources(), compiler, capability, cache, driver)
    if code.prebuilt(code.sources.units[0]) is None:
        code.target()  # raises if nothing here compiles for the device
    return CudaOps(Runtime(_native.Device.open(number, _Images(code))), code, at)


class _Images:
    """The images of units for a native device, which calls this on any thread."""

    def __init__(self, code: KernelCode) -> None:
        self._code, self._lock = code, threading.RLock()

    def __call__(self, unit: str) -> Image:
        with self._lock:
            found = self._code.image(unit)
            path = self._code.unit(unit)
            otherwise = None if self._code.prebuilt(path) is None else lambda why: self._compiled(path)
            return found.image, found.origin, otherwise

    def _compiled(self, path: Path) -> Image:
        with self._lock:
            self._code.compile_missing()  # the driver refuses the other prebuilt images, too
            found = self._code.compiled(path)
        return found.image, found.origin, None


class SelfTestMark:
    """A persistent record that this build's kernels passed the quick self-test on a device and its driver.

    Parameters
    ----------
    cache : KernelCache
    where : str
        All that a result may depend on: the build, the device and the driver.
    """

    def __init__(self, cache: KernelCache, *where: str) -> None:
        self._cache, self._key = cache, f"selftest-{hashlib.sha256(repr(where).encode()).hexdigest()[:32]}"

    @classmethod
    def of(cls, backend: CudaOps) -> SelfTestMark:
        code, device = backend.code, backend.runtime.device
        with open(_native.__file__, "rb") as file:
            build = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(code.cache, _version(), build, code.sources.hash, device.uuid, str(device.driver_version))

    def is_set(self) -> bool:
        return self._cache.get(self._key) is not None

    def set(self) -> None:
        self._cache.put(self._key, b"passed")


def _version() -> str:
    return importlib.metadata.version("hopfuse")
