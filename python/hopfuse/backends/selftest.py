"""Run every op of a backend on generated cases and compare the results with the CPU's, bit for bit."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ..errors import BackendError, DeviceMemoryError
from . import cpu
from .call import Answer, Backend, Case
from .selftest_cases import every_case, quick_cases, search_case, walk_cases

__all__ = ["Check", "KernelTimes", "difference", "kernel_times", "leaked_bytes", "run"]


@dataclass(frozen=True)
class Check:
    """The result of one case.

    Attributes
    ----------
    name : str
    equal : bool
        Whether all values have the same bits.
    values, differing : int
        The number of values compared, and of those that differ.
    cpu_seconds, device_seconds : float
        Time of the second of two calls, after one-time setup. The cases are small, so they do not show a device's
        speed.
    """

    name: str
    equal: bool
    values: int
    differing: int
    cpu_seconds: float
    device_seconds: float


@dataclass(frozen=True)
class KernelTimes:
    """A kernel's launches in one run of all cases, without recordings: count, total time, and the cases."""

    name: str
    launches: int
    seconds: float
    cases: tuple[str, ...]


def run(device: Backend, reference: Backend = cpu, *, quick: bool = False, rounds: int = 2) -> list[Check]:
    """Run every case on both backends; the last of ``rounds`` is timed."""
    return [_check(case, device, reference, rounds) for case in (quick_cases() if quick else every_case())]


def difference(device: Backend) -> str | None:
    """Run the quick self-test; return a description of the differences, or None.

    If walks in one launch fail or differ, the device launches pass by pass from then on, and the rest is tested so.
    """
    if device.device is not None and device.device.runtime.cooperative:
        reason = _difference_in_one_launch(device)
        if reason is not None:
            device.device.runtime.cooperative = False
            message = f"walks in one launch are not used: {reason}. Please report this"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
    wrong = [check for check in run(device, quick=True, rounds=1) if not check.equal]
    if not wrong:
        return None
    listed = ", ".join(f"{check.name} ({check.differing} of {check.values} values)" for check in wrong)
    return f"its results differ from the CPU's in {listed}; 'hopfuse selftest' shows details. Please report this"


def _difference_in_one_launch(device: Backend) -> str | None:
    for case in walk_cases():
        try:
            check = _check(case, device, cpu, rounds=1)
        except DeviceMemoryError:  # once there is room, the next call tests it
            raise
        except BackendError as error:
            return str(error)
        if not check.equal:
            return f"{check.differing} of {check.values} values differ from the CPU's"
    return None


def leaked_bytes(backend: Backend, times: int = 20) -> int | None:
    """Return the device memory lost by recording a search and dropping it ``times`` times; None without a device.

    A first recording loads kernels, which stay. Memory that other programs allocate also counts.
    """
    if backend.device is None:
        return None
    runtime, case = backend.device.runtime, search_case()
    free: list[int] = []
    for rounds in (1, times):
        for _ in range(rounds):
            case.run(backend)
        gc.collect()
        runtime.release()
        free.append(runtime.free_bytes())
    return free[0] - free[1]


def kernel_times(backend: Backend, *, quick: bool = False) -> list[KernelTimes]:
    """Run every case once and return the launched kernels, sorted by name; none on the CPU."""
    if backend.device is None:
        return []
    seconds: dict[str, list[float]] = {}
    cases: dict[str, list[str]] = {}
    for case in quick_cases() if quick else every_case():
        with backend.device.runtime.timed() as launches:
            case.run(backend)
        for launch in launches:
            seconds.setdefault(launch.kernel, []).append(launch.seconds)
        for kernel in {launch.kernel for launch in launches}:
            cases.setdefault(kernel, []).append(case.name)
    return [KernelTimes(name, len(seconds[name]), sum(seconds[name]), tuple(cases[name])) for name in sorted(seconds)]


def _check(case: Case, device: Backend, reference: Backend, rounds: int) -> Check:
    expected, cpu_seconds = _timed(case, reference, rounds)
    found, device_seconds = _timed(case, device, rounds)
    values = sum(array.size for array in expected)
    differing = _differing(found, expected)
    return Check(case.name, differing == 0, values, differing, cpu_seconds, device_seconds)


def _timed(case: Case, backend: Backend, rounds: int) -> tuple[Answer, float]:
    for _ in range(rounds):
        begin = perf_counter()
        answer = case.run(backend)
        seconds = perf_counter() - begin
    return answer, seconds


def _differing(found: Answer, expected: Answer) -> int:
    """Count values with different bytes: -0 differs from 0, and a NaN equals itself."""
    return sum(_differing_values(one, other) for one, other in zip(found, expected, strict=True))


def _differing_values(found: NDArray[np.generic], expected: NDArray[np.generic]) -> int:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return max(1, expected.size)
    if not expected.size:
        return 0
    pairs: Sequence[NDArray[np.uint8]] = [
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(expected.size, -1) for array in (found, expected)
    ]
    return int((pairs[0] != pairs[1]).any(axis=1).sum())
