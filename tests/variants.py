"""Kernel variants: the CPU's instruction sets, and the CUDA kernels on the SIMT emulator."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

from hopfuse import _native, backends

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels" / "simt"))
from hopfuse_simt import build
from hopfuse_simt.errors import SimtBuildError

SIMT = "simt"


@functools.cache
def simt_runtime() -> Any:
    """The emulator as a runtime of the device backend; from the first call on, ``backend="simt"`` is known."""
    from hopfuse.backends.cuda import DeviceBackend
    from hopfuse_simt.runtime import SimtRuntime

    runtime = SimtRuntime()
    backends.register(SIMT, DeviceBackend(runtime))
    return runtime


def built() -> list[str]:
    return [*_native.built_isas(), SIMT]


def missing(variant: str) -> str | None:
    """Why a variant cannot run here; None if it can."""
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
    os.environ.pop("HOPFUSE_BACKEND", None)
    assert _native.use_isa(variant)
