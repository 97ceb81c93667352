"""The CuPy runtime on :mod:`fake_cupy`, for one of two devices while the other is current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_cublas import FakeCublas
from fake_cupy import Device
from hopfuse.backends.cuda.kernel_cache import KernelCache
from hopfuse.backends.cuda.kernel_code import KernelCode
from hopfuse.backends.cuda.kernel_sources import find_sources
from names_only import NamesOnly

#: The device of the runtime. A call that does not make it current runs on device 0, where it fails.
DEVICE = 1


def make_runtime(kind: Any, simt: Any, folder: Path) -> Any:
    """Return a ``kind`` (CupyRuntime, or a copy of it with a bug) on the device; its cuBLAS is ``runtime.blas``."""
    compiler, cache = NamesOnly(simt), KernelCache(folder)
    with Device(DEVICE):
        runtime = kind(lambda capability: KernelCode(find_sources(), compiler, capability, cache))
    blas = FakeCublas()
    runtime._cublas._load = lambda: blas
    runtime.blas = blas
    return runtime
