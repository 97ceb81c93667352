"""How much of what is read may be left out, because it cannot be read or held, before it is not the rows' fault."""

from __future__ import annotations

from typing import Any

from .._validation import check_number, counted
from ..errors import HopfuseError, InputError

#: The share of passages, in per cent, that a reader leaves out by default before it stops.
SKIP_FAILED = 10.0


def check_share(skip_failed: Any) -> float:
    """Return a share in per cent that an argument ``skip_failed`` states."""
    return check_number(skip_failed, "skip_failed", low=0, high=100)


class Skips:
    """Counts the passages that a reader leaves out in one call or in several, or the rows of a store that a build does.

    Parameters
    ----------
    share : float
        Per cent of the passages that may be left out. One passage may be left out of any number above one, unless the
        share is 0. If all are, it is not the passages.
    total : int
    what : str
        What is counted, in the singular.
    """

    def __init__(self, share: float, total: int, what: str = "passage") -> None:
        self._share, self._total, self._what, self._failed = share, total, what, 0
        self._most = min(total - 1, max(1, int(total * share / 100)) if share else 0)

    def add(self, error: HopfuseError) -> str:
        """Count a passage that is left out, and return the reason, which an error states.

        Raises
        ------
        HopfuseError
            Of the error's class: more passages are left out than may be; or the error itself, if none may be.
        """
        self._failed += 1
        if self._most <= 0:
            raise error
        if self._failed > self._most:
            stops = InputError(
                "limit",
                "skip_failed",
                "{given} of {total} could not be read, and {field} allows {allowed:g} %; the last reason: {reason}. "
                "Mend the cause, or allow more with {field}",
                given=self._failed,
                total=counted(self._total, self._what),
                allowed=self._share,
                reason=str(error),
            )
            raise stops.about(kind=type(error))
        return str(error)
