"""Kernels of this folder on the GPU, by the driver's own calls: launches, arrays, and times by events."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnavailableError
from .card import Card

Array = np.ndarray[Any, Any]
#: Attributes of a device, by the driver's numbers.
MULTIPROCESSORS, MAJOR, MINOR, L2_BYTES, COOPERATIVE = 16, 75, 76, 38, 95
THREADS = 256
#: Names of NVRTC that the loader knows, and the headers that the kernels include.
LOADED = ("libnvrtc.so.13", "libnvrtc.so.12")
INCLUDE = Path(__file__).resolve().parents[2] / "kernels" / "include"


def compiler() -> ctypes.CDLL:
    """Return NVRTC: that of ``HOPFUSE_NVRTC``, else NVIDIA's newest wheel, else what the loader finds."""
    wheels = [file for folder in sys.path if folder for file in Path(folder, "nvidia").glob("*/lib/libnvrtc.so.1[0-9]")]
    named = os.environ.get("HOPFUSE_NVRTC")
    others = [*map(str, sorted(wheels, key=lambda file: file.suffix, reverse=True)), *LOADED]
    for path in [named] if named else others:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise UnavailableError("no NVRTC is found: set HOPFUSE_NVRTC, or install the extra cuda12 or cuda13")


def compiled(source: Path, capability: int) -> bytes:
    """Return the machine code of a .cu file for a compute capability."""
    nvrtc, program = compiler(), ctypes.c_void_p()
    options = [f"--gpu-architecture=sm_{capability}", "--std=c++17", "--fmad=false", f"-I{INCLUDE}"]
    words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None
    ) or nvrtc.nvrtcCompileProgram(program, len(options), words)
    if failed:
        raise UnavailableError(f"{source.name} cannot be compiled here for sm_{capability}: NVRTC's status is {failed}")
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


class Module:
    """The kernels of a .cu file, and device memory that is freed with it."""

    def __init__(self, card: Card, source: Path) -> None:
        self._card, self._device, self._held = card, ctypes.c_int(), list[ctypes.c_uint64]()
        card.ask("cuDeviceGet", ctypes.byref(self._device), 0)
        self.multiprocessors = self.attribute(MULTIPROCESSORS)
        self._module = ctypes.c_void_p()
        card.inside("cuModuleLoadData", ctypes.byref(self._module), self._compiled(source))

    def _compiled(self, source: Path) -> bytes:
        return compiled(source, 10 * self.attribute(MAJOR) + self.attribute(MINOR))

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._card.ask("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def array(self, content: Array) -> ctypes.c_uint64:
        """Return the address of a copy of an array on the device."""
        address = ctypes.c_uint64()
        self._card.inside("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(content.nbytes))
        self._held.append(address)
        self._wait("cuMemcpyHtoDAsync_v2", address, content.ctypes.data_as(ctypes.c_void_p), content)
        return address

    def read(self, address: Any, like: Array) -> Array:
        """Return an array of the device, with the shape and type of another."""
        found = np.empty_like(like)
        self._wait("cuMemcpyDtoHAsync_v2", found.ctypes.data_as(ctypes.c_void_p), address, found)
        return found

    def _wait(self, call: str, to: Any, source: Any, content: Array) -> None:
        self._card.inside(call, to, source, ctypes.c_size_t(content.nbytes), ctypes.c_void_p())
        self._card.inside("cuStreamSynchronize", ctypes.c_void_p())

    def free(self) -> None:
        """Free all arrays."""
        while self._held:
            self._card.inside("cuMemFree_v2", self._held.pop())

    def launcher(
        self, kernel: str, blocks: int, given: Sequence[Any], is_cooperative: bool = False
    ) -> Callable[[], None]:
        """Return a function that launches a kernel."""
        function, dimensions = ctypes.c_void_p(), (blocks, 1, 1, THREADS, 1, 1, 0)
        self._card.inside("cuModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
        places = (ctypes.c_void_p * len(given))(*(ctypes.addressof(one) for one in given))
        call, more = ("cuLaunchCooperativeKernel", ()) if is_cooperative else ("cuLaunchKernel", (None,))

        def launch(_kept: Sequence[Any] = given) -> None:
            self._card.inside(call, function, *dimensions, ctypes.c_void_p(), places, *more)

        return launch

    def resident_blocks(self, kernel: str) -> int:
        """Return how many blocks of a kernel run at once."""
        function, blocks = ctypes.c_void_p(), ctypes.c_int()
        self._card.inside("cuModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
        self._card.inside(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, THREADS, ctypes.c_size_t(0)
        )
        return blocks.value * self.multiprocessors

    def seconds(self, launch: Callable[[], None], times: int) -> list[float]:
        """Return the time of each of some launches by events, after one that is not timed."""
        begin, end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (begin, end):
            self._card.inside("cuEventCreate", ctypes.byref(event), 0)
        launch()
        taken = []
        for _ in range(times):
            self._card.inside("cuEventRecord", begin, ctypes.c_void_p())
            launch()
            self._card.inside("cuEventRecord", end, ctypes.c_void_p())
            self._card.inside("cuEventSynchronize", end)
            milliseconds = ctypes.c_float()
            self._card.inside("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
            taken.append(milliseconds.value / 1e3)
        for event in (begin, end):
            self._card.inside("cuEventDestroy_v2", event)
        return taken

    def seconds_in_a_row(self, launch: Callable[[], None], times: int) -> float:
        """Return the wall time of a launch of many, one right after another."""
        launch()
        self._card.inside("cuStreamSynchronize", ctypes.c_void_p())
        begin = time.perf_counter()
        for _ in range(times):
            launch()
        self._card.inside("cuStreamSynchronize", ctypes.c_void_p())
        return (time.perf_counter() - begin) / times
