"""Passages that a reader cannot read: how many may be left out, and why each of them is."""

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
    """The passages that were left out of those of one call, by number, each with the reason.

    Parameters
    ----------
    share : float
        Per cent of the passages that may be left out. One passage may be left out of any number above one, unless the
        share is 0. If all are, it is not the passages.
    total : int
    """

    def __init__(self, share: float, total: int) -> None:
        self._share, self._total = share, total
        self._most = min(total - 1, max(1, int(total * share / 100)) if share else 0)
        self.reasons: dict[int, str] = {}

    def __contains__(self, at: int) -> bool:
        return at in self.reasons

    def add(self, at: int, error: HopfuseError, part: str = "") -> None:
        """Leave out a passage, or a part of what is read in it, for the reason that an error states.

        Raises
        ------
        HopfuseError
            Of the error's class: more passages are left out than may be; or the error itself, if none may be.
        """
        if not self._most:
            raise error
        self.reasons[at] = f"{part}: {error}" if part else str(error)
        if len(self.reasons) > self._most:
            stops = InputError(
                "limit",
                "skip_failed",
                "{given} of {total} could not be read, and {field} allows {allowed:g} %; the last reason: {reason}. "
                "Mend the cause, or allow more with {field}",
                given=len(self.reasons),
                total=counted(self._total, "passage"),
                allowed=self._share,
                reason=self.reasons[at],
            )
            raise stops.about(kind=type(error))
