"""The GPU as its driver reports it: whether there is one, its free memory, and memory to fill it with."""

from __future__ import annotations

import ctypes
import gc
import os
from functools import cache
from typing import Any

import hopfuse as hf

from ..errors import UnavailableError

BACKEND = "cuda"
#: Where the driver's entry points are, as hopfuse looks for them.
LIBRARY = "libcuda.so.1"


def require_card() -> Card:
    """Return the first device; raise UnavailableError if there is no driver or no device."""
    return _card()


def about_card() -> dict[str, Any]:
    """Return hopfuse's description of its backend on the GPU."""
    about: dict[str, Any] = hf.backend_info()["backends"][BACKEND]
    return about


class Card:
    """The memory of a device outside hopfuse's, by the driver's own calls in the context that hopfuse uses too."""

    def __init__(self, driver: ctypes.CDLL) -> None:
        self._driver, device = driver, ctypes.c_int()
        self._context = ctypes.c_void_p()
        self.ask("cuDeviceGet", ctypes.byref(device), 0)
        self.ask("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)

    def free_bytes(self) -> int:
        """Return the device's free memory, after releasing what no longer has a use."""
        gc.collect()
        hf.free_device_memory(backend=BACKEND)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.inside("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def fill(self, least: int) -> list[int]:
        """Allocate all device memory, except for less than ``least`` bytes; return the addresses."""
        held, size = list[int](), self.free_bytes()
        while size >= least:
            address = ctypes.c_uint64()
            try:
                self.inside("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            except MemoryError:
                size //= 2
            else:
                held.append(address.value)
        return held

    def release(self, held: list[int]) -> None:
        """Free what :meth:`fill` allocated."""
        while held:
            self.inside("cuMemFree_v2", ctypes.c_uint64(held.pop()))

    def inside(self, call: str, *arguments: Any) -> None:
        """Call the driver in the device's context, and restore the caller's."""
        self.ask("cuCtxPushCurrent_v2", self._context)
        try:
            self.ask(call, *arguments)
        finally:
            self.ask("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def ask(self, call: str, *arguments: Any) -> None:
        """Call the driver, and raise if it returns an error."""
        status = getattr(self._driver, call)(*arguments)
        if status == 2:  # CUDA_ERROR_OUT_OF_MEMORY
            raise MemoryError(call)
        if status:
            raise RuntimeError(f"{call} failed with the driver's error {status}")


@cache
def _card() -> Card:
    try:
        driver = ctypes.CDLL(os.environ.get("HOPFUSE_LIBCUDA") or LIBRARY)
    except OSError as error:
        raise UnavailableError(f"there is no NVIDIA driver: {error}") from error
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise UnavailableError("the NVIDIA driver has no device")
    return Card(driver)
