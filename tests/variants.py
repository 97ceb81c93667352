"""Kernel variants: the CPU's instruction sets, and the CUDA kernels on the SIMT emulator and on a GPU.

A test on the CPU calls each kernel on every instruction set; one on a device calls it on the CPU too. A difference in a
single bit fails the test, so that a test compares with the oracle once and knows all variants.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from compare import assert_bitwise
from emulated_device import SIMT, SimtRuntime, builder, driver, no_real_device
from hopfuse import _native, backends
from hopfuse._arrays import vectors
from hopfuse.backends import calls
from hopfuse.backends.calls.ppr import PprCall, PprTopkCall
from hopfuse.backends.calls.seeding import EntitySeedCall
from hopfuse.backends.cuda import DeviceOps
from hopfuse.backends.first_use import FirstUse
from hopfuse.errors import BackendError
from hopfuse_simt.errors import SimtBuildError
from native_kernels import COSTS, KERNELS

CPU = "cpu"
CUDA = "cuda"
#: Whether this process runs the tests on a GPU instead of the emulator: a process has one driver.
ON_GPU = os.environ.get("HOPFUSE_TESTS_DRIVER") == CUDA
#: The orders of threads and blocks on the emulator, with the seed of those that are shuffled.
ORDERS = {"forward": 0, "reverse": 0, "shuffle": 1}
#: Builds of the emulator that find more than the plain one; they are slow, and only in the full tier.
SANITIZERS = ("asan", "tsan")
SANITIZED = [pytest.param(build, marks=pytest.mark.full) for build in SANITIZERS]
#: Calls whose answers may have more empty places on a device; it is to answer all others with the CPU's bits.
WIDER = (EntitySeedCall,)
#: The files of calls, through which all kernels are called.
CALLS = list(calls.modules())


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


def replace_native(module: Any) -> None:
    """Let calls use this module in the place of the native one."""
    for file in CALLS:
        file._native = module  # type: ignore[attr-defined]


def _compiled_for(isa: str, kernel: str) -> bool:
    """Return whether the variant has its own kernel, not that of another variant."""
    use(isa)
    return _native.isa_of(kernel) == isa


@contextmanager
def every_instruction_set() -> Iterator[None]:
    """Run calls on the CPU on every instruction set, and check that they agree."""
    every, native = EveryInstructionSet(_native), vectors.native
    vectors.native = lambda: every
    replace_native(every)
    try:
        yield
    finally:
        vectors.native = native
        replace_native(_native)


def every_order() -> list[Any]:
    """Return the orders of threads and the sanitizers' builds as parameters of tests."""
    return [*ORDERS, *SANITIZED]


def params(*, in_every_order: bool) -> list[Any]:
    """Return the parameters of the fixture ``variant``: the CPU, the emulator in one order or in every one, a GPU."""
    found: list[Any] = [CPU]
    if in_every_order:
        found += [pytest.param(f"{SIMT}-{order}", marks=pytest.mark.emulator) for order in ORDERS]
        full = [pytest.mark.emulator, pytest.mark.full]
        found += [pytest.param(f"{SIMT}-{build}", marks=full) for build in SANITIZERS]
    else:
        found.append(pytest.param(SIMT, marks=pytest.mark.emulator))
    if ON_GPU:
        return [CPU, pytest.param(CUDA, marks=pytest.mark.gpu)]
    return found


def order_of(test: str) -> str:
    """Return the order of threads in which the emulator runs a test that has no order of its own."""
    return [*ORDERS][zlib.crc32(test.encode()) % len(ORDERS)]


@functools.cache
def open_emulator() -> None:
    """Make the emulated driver that of this process; its devices run no code for a GPU."""
    driver()
    backends._cuda = FirstUse(CUDA, no_real_device, simt_runtime, lambda _: None)


@functools.cache
def simt_runtime() -> SimtRuntime:
    """Return the emulator as a runtime of the device backend, and register ``backend="simt"`` at the first call."""
    open_emulator()
    runtime = SimtRuntime()
    backends.register(SIMT, DeviceOps(runtime))
    return runtime


@contextmanager
def registered(name: str, build: str = "plain", ordinal: int | None = None, **settings: Any) -> Iterator[SimtRuntime]:
    """Register ``backend=name`` with its own runtime, in another build of the emulator or on another of its devices."""
    simt_runtime()
    runtime, before = SimtRuntime(build, ordinal, **settings), backends._backends.get(name)
    backends.register(name, DeviceOps(runtime))
    try:
        yield runtime
    finally:
        if before is None:
            backends._backends.pop(name)
        else:
            backends.register(name, before)
        runtime.simt.restore()


@contextmanager
def emulated(threads: str) -> Iterator[SimtRuntime]:
    """Run calls on the emulator in an order of threads, or in a sanitizer's build; yield its runtime, as new.

    What the emulated driver finds in the calls fails the test.
    """
    runtime = simt_runtime()
    with contextlib.ExitStack() as stack:
        stack.enter_context(same_bits_as_the_cpu())
        if threads in SANITIZERS:
            runtime = stack.enter_context(registered(SIMT, threads, order="shuffle", seed=ORDERS["shuffle"]))
        else:
            stack.callback(_as_new, runtime)
            _as_new(runtime)
            runtime.order, runtime.seed = threads, ORDERS[threads]
        runtime.driver.finish()
        runtime.driver.clear()
        stack.callback(use, _native.isa())
        use(SIMT)
        yield runtime
        runtime.driver.finish()
        found = "\n".join(f"{finding.kind}: {finding.text}" for finding in runtime.findings)
        assert not found, found


def _as_new(runtime: SimtRuntime) -> None:
    """Restore what a test may change of a device."""
    runtime.simt.restore()
    runtime.cooperative = True
    _resize(runtime, {})


def use_sizes(**sizes: int) -> None:
    """Give the emulator these sizes of units of work, and else the usual ones, until the test that uses it ends."""
    if SIMT in backends._backends:
        _resize(backends._backends[SIMT].runtime, sizes)


def _resize(runtime: SimtRuntime, sizes: dict[str, int]) -> None:
    for name, value in (_SIZES | sizes).items():
        setattr(runtime.sizes, name, value)


def _sizes_of(device: _native.Device) -> dict[str, int]:
    return {name: getattr(device.sizes, name) for name in dir(device.sizes) if not name.startswith("_")}


_SIZES = _sizes_of(_native.Device.counting())


@contextmanager
def same_bits_as_the_cpu() -> Iterator[None]:
    """Make every call of a device on the CPU too, and check that both leave the same bits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeviceOps, "run", _compared(DeviceOps.run))
        yield


def _compared(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def called(self: DeviceOps, call: Any) -> Any:
        found = run(self, call)
        walks = isinstance(call, PprCall | PprTopkCall)
        if self.runtime.is_capturing or isinstance(call, WIDER) or (walks and call.queries.on_device):
            return found  # the CPU is not given restarts of a device
        given = _given_to_the_cpu(call, self.runtime)
        left, right = [found], [given.run_on_host()]
        if isinstance(call, PprCall):
            left.append(call.scores)
            right.append(given.scores)
        for mine, theirs in zip(_arrays(left, self.runtime), _arrays(right, self.runtime), strict=True):
            if mine.dtype != theirs.dtype or mine.tobytes() != theirs.tobytes():
                where = f"{self.runtime.name} ({getattr(self.runtime, 'order', '')})"
                assert_bitwise(mine, theirs, f"{type(call).__name__} on {where}")
        return found

    return called


def _on_host(one: Any, runtime: Any) -> Any:
    """Return what a call holds with its arrays on the host; of the emulator, without a trace in its logs."""
    if isinstance(one, _native.DeviceArray):
        return runtime.peek(one) if runtime.name == SIMT else one.to_numpy()
    if type(one) in (list, tuple):
        return type(one)(_on_host(part, runtime) for part in one)
    return one


def _given_to_the_cpu(call: Any, runtime: Any) -> Any:
    """Return a call with its arrays on the host, and for an array that results are written to another one."""
    if isinstance(call, PprCall):
        return call._replace(scores=np.empty(call.scores.shape, call.scores.dtype))
    there = type(call)(*(_on_host(part, runtime) for part in call))
    return there._replace(on_device=False) if "on_device" in call._fields else there


def _arrays(value: Any, runtime: Any) -> list[Any]:
    """Return the arrays of results on the host, in their order."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if "on_device" in getattr(value, "_fields", ()):
        value = value._replace(on_device=None)
    if isinstance(value, list | tuple):
        return [array for part in value for array in _arrays(part, runtime)]
    return [] if value is None else [np.asarray(_on_host(value, runtime))]


def missing(variant: str) -> str | None:
    """Return why a variant cannot run here, or None if it can."""
    if variant == CUDA:
        if not ON_GPU:
            return "HOPFUSE_TESTS_DRIVER is not cuda, so that device tests run on the emulator"
        try:
            backends.untested(CUDA)
        except BackendError as error:
            return str(error)
    if variant == SIMT:
        if ON_GPU:
            return "this process runs the tests on a GPU"
        try:
            builder.compiler()
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
