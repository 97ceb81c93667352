"""The self-test of a backend, as users run it."""

from __future__ import annotations

from dataclasses import dataclass

from ..backends import untested
from ..backends.selftest import Check, leaked_bytes, run

__all__ = ["Check", "SelfTest", "selftest"]


@dataclass(frozen=True)
class SelfTest:
    """Results of :func:`selftest`.

    Attributes
    ----------
    backend : str
    quick : bool
    checks : tuple of Check
    leaked_bytes : int or None
        Device memory that 20 recordings of a search did not give back when they were dropped, with what other programs
        took meanwhile; None on the CPU and in the quick form.
    passed : bool
        Whether every check is equal.
    """

    backend: str
    quick: bool
    checks: tuple[Check, ...]
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
    return SelfTest(backend, quick, checks, None if quick else leaked_bytes(chosen))
