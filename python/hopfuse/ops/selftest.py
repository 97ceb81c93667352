"""The self-test of a backend, as users run it."""

from __future__ import annotations

from dataclasses import dataclass

from ..backends import untested
from ..backends.selftest import Check, kernel_times, leaked_bytes, run

__all__ = ["Check", "KernelCheck", "SelfTest", "selftest"]


@dataclass(frozen=True)
class KernelCheck:
    """A kernel of a device in :func:`selftest`.

    Attributes
    ----------
    name : str
    equal : bool
        Whether every check that launched it is equal.
    launches : int
        Those of one run of all checks, recordings aside.
    seconds : float
        Of all these launches together, by events on the device. The checks are small: most of it is the host's calls.
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
        Those of a device; none on the CPU.
    leaked_bytes : int or None
        Device memory that 20 recordings of a search did not give back when they were dropped, with what other programs
        took meanwhile; None on the CPU and in the quick form.
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
    """Run every op of a backend on generated cases and compare with the CPU's answers, bit for bit.

    Parameters
    ----------
    backend : str
        "cuda", or "auto" for what calls get by default.
    quick : bool
        A few cases, as before the first use of a GPU; otherwise every kernel runs.

    Returns
    -------
    SelfTest

    Raises
    ------
    BackendError
        This machine cannot run the backend; the message says why.

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
