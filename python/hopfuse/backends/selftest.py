"""The self-test: every op of a backend on generated cases, against the CPU's answer, bit for bit."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from . import cpu
from .calls import Backend
from .selftest_cases import Answer, Case, every_case, quick_cases, search_case

__all__ = ["Check", "KernelTimes", "difference", "kernel_times", "leaked_bytes", "run"]


@dataclass(frozen=True)
class Check:
    """One case.

    Attributes
    ----------
    name : str
    equal : bool
        Whether all values have the same bits.
    values, differing : int
        Numbers compared, and those with other bits.
    cpu_seconds, device_seconds : float
        Time of the second of two calls: the first makes what is made once. The cases are small: a device is at its
        slowest on them.
    """

    name: str
    equal: bool
    values: int
    differing: int
    cpu_seconds: float
    device_seconds: float


@dataclass(frozen=True)
class KernelTimes:
    """A kernel in one run of all cases: its launches outside recordings, their seconds together, who launched it."""

    name: str
    launches: int
    seconds: float
    cases: tuple[str, ...]


def run(device: Backend, reference: Backend = cpu, *, quick: bool = False, rounds: int = 2) -> list[Check]:
    """Run every case on both backends; the last of ``rounds`` is timed."""
    return [_check(case, device, reference, rounds) for case in (quick_cases() if quick else every_case())]


def difference(device: Backend) -> str | None:
    """Return what the quick self-test finds wrong, as a sentence; None if nothing."""
    wrong = [check for check in run(device, quick=True, rounds=1) if not check.equal]
    if not wrong:
        return None
    listed = ", ".join(f"{check.name} ({check.differing} of {check.values} values)" for check in wrong)
    return f"its answers differ from the CPU's in {listed}; 'hopfuse selftest' shows all. Please report it"


def leaked_bytes(backend: Backend, times: int = 20) -> int | None:
    """Return the device memory that recording a search and dropping it does not give back; None without a device.

    The first time loads kernels and starts cuBLAS, which stay. What other programs take meanwhile counts as well.
    """
    if backend.device is None:
        return None
    runtime, case = backend.device.runtime, search_case()
    free: list[int] = []
    for rounds in (1, times):
        for _ in range(rounds):
            case.run(backend)
        gc.collect()
        runtime.trim()
        free.append(runtime.free_bytes())
    return free[0] - free[1]


def kernel_times(backend: Backend, *, quick: bool = False) -> list[KernelTimes]:
    """Run every case once more and return the kernels that were launched, by name; none on the CPU."""
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
    """Count values with other bytes: -0 is not 0 here, and a NaN is itself."""
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
