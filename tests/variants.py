"""Kernel variants: the CPU's instruction sets, and the CUDA kernels on the SIMT emulator and on a GPU."""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import _native, backends
from hopfuse._arrays import codes
from hopfuse.backends import cpu
from hopfuse.backends.cuda import DeviceOps
from hopfuse.errors import BackendError

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels" / "simt"))
from hopfuse_simt import build
from hopfuse_simt.errors import SimtBuildError
from hopfuse_simt.runtime import SimtRuntime

CPU = "cpu"
SIMT = "simt"
CUDA = "cuda"
#: Builds of the emulator that find more than the plain one; they are slow, and only in the full tier.
SANITIZERS = [pytest.param(build, marks=pytest.mark.full) for build in ("asan", "tsan")]
#: The native functions that are compiled once per instruction set.
KERNELS = (
    "calibrate",
    "dense_encode",
    "dense_topk",
    "dice",
    "fuse",
    "ising",
    "ppr",
    "ppr_topk",
    "project",
    "project_topk",
    "similarity",
)
#: Outputs about a call's cost, in which instruction sets may differ (kernels/include/hopfuse/dense_topk.h).
COSTS = {"rescored"}


class EveryInstructionSet:
    """The native module, with each kernel called on every instruction set: all must give the same bits.

    A test that compares an answer with the oracle on this module has compared it on every instruction set, at the
    oracle's cost for one.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        made = getattr(self._module, name)
        return functools.partial(self._call, name, made) if name in KERNELS else made

    def _call(self, name: str, kernel: Callable[..., Any], *inputs: Any, **keywords: Any) -> Any:
        arrays = {key: value for key, value in keywords.items() if isinstance(value, np.ndarray)}
        outputs = {key: array for key, array in arrays.items() if array.flags.writeable}
        before = {key: array.copy() for key, array in outputs.items()}
        best, *others = [isa for isa in _native.runnable_isas() if _compiled_for(isa, name)]
        left: dict[str, dict[str, Any]] = {}
        for isa in (*others, best):  # the best last: its outputs are the ones that stay
            for key, array in outputs.items():
                array[...] = before[key]
            use(isa)
            result = kernel(*inputs, **keywords)
            left[isa] = {key: array.copy() for key, array in outputs.items()}
        for isa, key in itertools.product(others, outputs.keys() - COSTS):
            if left[isa][key].tobytes() != left[best][key].tobytes():
                assert_bitwise(left[isa][key], left[best][key], f"{name}'s {key} on {isa}, not as on {best}")
        return result


def _compiled_for(isa: str, kernel: str) -> bool:
    """Return whether the variant has its own kernel, not that of another variant."""
    use(isa)
    return _native.isa_of(kernel) == isa


@contextmanager
def every_instruction_set() -> Iterator[None]:
    """Run calls on the CPU on every instruction set, and check that they agree."""
    every, native = EveryInstructionSet(_native), codes.native
    cpu._native = every  # type: ignore[assignment]
    codes.native = lambda: every
    try:
        yield
    finally:
        cpu._native, codes.native = _native, native


@functools.cache
def simt_runtime() -> Any:
    """Return the emulator as a runtime of the device backend, and register ``backend="simt"`` at the first call."""
    runtime = SimtRuntime()
    backends.register(SIMT, DeviceOps(runtime))
    return runtime


@contextmanager
def registered(name: str, build: str, **options: Any) -> Iterator[Any]:
    """Register ``backend=name`` with its own runtime, in another build of the emulator."""
    runtime = SimtRuntime(build, **options)
    backends.register(name, DeviceOps(runtime))
    try:
        yield runtime
    finally:
        backends._backends.pop(name)
        runtime.module.close()


def missing(variant: str) -> str | None:
    """Return why a variant cannot run here, or None if it can."""
    if variant == CUDA:
        try:
            backends.untested(CUDA)
        except BackendError as error:
            return str(error)
    if variant == SIMT:
        try:
            build.compiler()
        except SimtBuildError as error:
            return str(error)
    return None


def use(variant: str) -> None:
    """Run calls with ``backend="auto"`` on this variant from now on."""
    if variant == SIMT:
        simt_runtime()
        os.environ["HOPFUSE_BACKEND"] = SIMT
        return
    if variant == CUDA:
        os.environ["HOPFUSE_BACKEND"] = CUDA
        return
    os.environ.pop("HOPFUSE_BACKEND", None)
    assert _native.use_isa(variant)
