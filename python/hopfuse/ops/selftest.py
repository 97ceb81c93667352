"""The self-test of a backend, as users run it."""

from __future__ import annotations

from dataclasses import dataclass

from ..backends import untested
from ..backends.selftest import Check, run

__all__ = ["Check", "SelfTest", "selftest"]


@dataclass(frozen=True)
class SelfTest:
    """Results of :func:`selftest`.

    Attributes
    ----------
    backend : str
    quick : bool
    checks : tuple of Check
    passed : bool
        Whether every check is equal.
    """

    backend: str
    quick: bool
    checks: tuple[Check, ...]

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
    return SelfTest(backend, quick, tuple(run(untested(backend), quick=quick)))
