"""The public self-test of a backend."""

from __future__ import annotations

from dataclasses import dataclass

from ..backends import untested
from ..backends.selftest import Check, kernel_times, leaked_bytes, run

__all__ = ["Check", "KernelCheck", "SelfTest", "selftest"]


@dataclass(frozen=True)
class KernelCheck:
    """The result of :func:`selftest` for one kernel of a device.

    Attributes
    ----------
    name : str
    equal : bool
        Whether every check that launched the kernel is equal.
    launches : int
        Launches in one run of all checks, without those of recordings.
    seconds : float
        Total time of these launches, measured by device events. The checks are small, so it is mostly launch overhead.
    checks : tuple of str
        The names of the checks that launched it.
    """

    name: str
    equal: bool
    launches: int
    seconds: float
    checks: tuple[str, ...]


@dataclass(frozen=True)
class SelfTest:
    """Results of :func:`selftest`.

    Attributes
    ----------
    backend : str
    quick : bool
    checks : tuple of Check
    kernels : tuple of KernelCheck
        The kernels of a device; empty on the CPU.
    leaked_bytes : int or None
        Device memory still in use after 20 recordings of a search were made and dropped, including any that other
        programs allocated meanwhile; None on the CPU and if ``quick``.
    passed : bool
        Whether every check is equal.
    """

    backend: str
    quick: bool
    checks: tuple[Check, ...]
    kernels: tuple[KernelCheck, ...] = ()
    leaked_bytes: int | None = None

    @property
    def passed(self) -> bool:
        return all(check.equal for check in self.checks)


def selftest(backend: str = "cuda", quick: bool = False) -> SelfTest:
    """Run every op of a backend on generated cases and compare with the CPU's results, bit for bit.

    Parameters
    ----------
    backend : str
        "cuda", or "auto" for the default backend.
    quick : bool
        Run only the few cases that also run before the first use of a GPU; otherwise run every kernel.

    Returns
    -------
    SelfTest

    Raises
    ------
    BackendError
        The backend cannot run on this machine; the message says why.

    Examples
    --------
    >>> import hopfuse as hf
    >>> found = hf.selftest("cpu", quick=True)
    >>> found.passed, sum(check.differing for check in found.checks)
    (True, 0)
    """
    chosen = untested(backend)
    checks = tuple(run(chosen, quick=quick))
    wrong = {check.name for check in checks if not check.equal}
    kernels = tuple(
        KernelCheck(found.name, wrong.isdisjoint(found.cases), found.launches, found.seconds, found.cases)
        for found in kernel_times(chosen, quick=quick)
    )
    return SelfTest(backend, quick, checks, kernels, None if quick else leaked_bytes(chosen))
