"""Devices of the emulated driver, kernels/simt/libcuda, on which the device backend runs as on a GPU."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hopfuse import _native
from hopfuse.backends.cuda.runtime import Runtime
from hopfuse.errors import BackendError

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels" / "simt"))
from hopfuse_simt import build as builder
from hopfuse_simt.driver import CUDA, SimtDevice, SimtDriver

#: The builds of the emulator, each on a device of its own.
ORDINALS = {"plain": 0, "asan": 1, "tsan": 2, "count": 3}
#: A device besides those. No test leaves its context open, which a planted bug may break; arrays of other libraries
#: leave 6 and 7 open.
OTHER = 5
SIMT = "simt"


@functools.cache
def driver() -> SimtDriver:
    """Return the emulated driver, which the native module uses in this process from now on."""
    made = SimtDriver()
    before = os.environ.get("HOPFUSE_LIBCUDA")
    os.environ["HOPFUSE_LIBCUDA"] = str(made.path)
    try:
        _native.driver_version()  # opens it
    finally:
        if before is None:
            del os.environ["HOPFUSE_LIBCUDA"]
        else:
            os.environ["HOPFUSE_LIBCUDA"] = before
    return made


@functools.cache
def image(build: str, source: Path, capability: int) -> bytes:
    """Return a .cu file compiled for the emulated driver."""
    made = builder.build_all([source], build, program=build in ("asan", "tsan"), capability=capability)
    return SimtDriver.image(made[0])


def open_device(
    build: str = "plain", ordinal: int | None = None, folder: Path = CUDA, capability: int = 90
) -> _native.Device:
    """Open a device of the emulated driver whose kernels are those of a folder, in a build of the emulator."""
    driver()

    def code(unit: str) -> tuple[bytes, str, None]:
        return image(build, folder / f"{unit}.cu", capability), f"emulator, {build}", None

    with pytest.MonkeyPatch.context() as patch:
        if build in ("asan", "tsan"):  # so that a sanitizer sees the end of every array
            patch.setenv("HOPFUSE_CUDA_MEMORY", "separate")
        return _native.Device.open(ORDINALS[build] if ordinal is None else ordinal, code)


def _of_device(name: str) -> Any:
    def get(self: SimtRuntime) -> Any:
        return getattr(self.simt, name)

    def set_(self: SimtRuntime, value: Any) -> None:
        setattr(self.simt, name, value)

    return property(get, set_)


def _of_driver(name: str) -> Any:
    def get(self: SimtRuntime) -> Any:
        return getattr(self.driver, name)

    return property(get)


class SimtRuntime(Runtime):
    """A device of the emulated driver as the runtime of :class:`hopfuse.backends.cuda.DeviceOps`, with its controls."""

    order, seed, mma = _of_device("order"), _of_device("seed"), _of_device("mma")
    launches, counters, events, findings = (_of_driver(name) for name in ("launches", "counters", "events", "findings"))

    def __init__(
        self,
        build: str = "plain",
        ordinal: int | None = None,
        *,
        folder: Path = CUDA,
        capability: int = 90,
        **settings: Any,
    ) -> None:
        self.driver = driver()
        device = ORDINALS[build] if ordinal is None else ordinal
        self.simt: SimtDevice = self.driver.devices[device]
        for name, value in {"capability": capability, **settings}.items():
            setattr(self.simt, name, value)
        super().__init__(open_device(build, device, folder, capability), SIMT)

    @property
    def sizes(self) -> _native.DeviceSizes:
        """The sizes of units of work, which tests change."""
        return self.device.sizes

    def peek(self, array: _native.DeviceArray) -> Any:
        """Return an array as it is when all queued work has run, whatever the host knows of it."""
        return self.driver.peek(array.address, array.shape, array.dtype)


def no_real_device() -> BackendError:
    """Return the error of ``backend="cuda"`` in a process whose driver is the emulated one."""
    return BackendError("unavailable", "backend", "this process runs kernels on the emulator, not on a GPU")
