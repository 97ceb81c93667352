"""Kernel variants: the CPU's instruction sets, and the CUDA kernels on the SIMT emulator and on a GPU."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hopfuse import _native, backends
from hopfuse.backends.cuda import DeviceBackend
from hopfuse.errors import BackendError

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels" / "simt"))
from hopfuse_simt import build
from hopfuse_simt.errors import SimtBuildError
from hopfuse_simt.runtime import SimtRuntime

SIMT = "simt"
CUDA = "cuda"


@functools.cache
def simt_runtime() -> Any:
    """The emulator as a runtime of the device backend; from the first call on, ``backend="simt"`` is known."""
    runtime = SimtRuntime()
    backends.register(SIMT, DeviceBackend(runtime))
    return runtime


@contextmanager
def registered(name: str, build: str, **options: Any) -> Iterator[Any]:
    """``backend=name`` on a runtime of its own, in another build of the emulator."""
    runtime = SimtRuntime(build, **options)
    backends.register(name, DeviceBackend(runtime))
    try:
        yield runtime
    finally:
        backends._backends.pop(name)
        runtime.module.close()


def missing(variant: str) -> str | None:
    """Why a variant cannot run here; None if it can."""
    if variant == CUDA:
        try:
            backends.untested(CUDA)
        except BackendError as error:
            return str(error)
        return None
    if variant == SIMT:
        try:
            build.compiler()
        except SimtBuildError as error:
            return str(error)
        return None
    return None if variant in _native.runnable_isas() else f"this processor cannot run the variant {variant!r}"


def use(variant: str) -> None:
    """Calls with ``backend="auto"`` run this variant from now on."""
    if variant == SIMT:
        simt_runtime()
        os.environ["HOPFUSE_BACKEND"] = SIMT
        return
    if variant == CUDA:
        os.environ["HOPFUSE_BACKEND"] = CUDA
        return
    os.environ.pop("HOPFUSE_BACKEND", None)
    assert _native.use_isa(variant)
