"""The bytes that requests hold: bodies that are arriving, and requests until they are answered."""

from __future__ import annotations

from ..errors import HopfuseError, InputError
from .errors import RefusalError


class ByteBudget:
    """Bytes that are held, in all and by owner. Not thread-safe: the event loop counts.

    Parameters
    ----------
    most, most_each : int
        ``limits.queue_bytes``, and this worker's part of ``limits.key_bytes``.

    Examples
    --------
    >>> budget = ByteBudget(100, 60)
    >>> held = budget.hold("team")
    >>> held.add(50)
    >>> budget.nbytes, budget.room("team"), budget.room("others")
    (50, 10, 50)
    >>> held.release()
    >>> budget.nbytes
    0
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self.nbytes = 0
        self._owners: dict[str, int] = {}

    def hold(self, owner: str) -> Held:
        """Return the account of a request, which holds nothing yet."""
        return Held(self, owner)

    def room(self, owner: str) -> int:
        """Return the bytes that an owner may still add."""
        return min(self._most - self.nbytes, self._most_each - self._owners.get(owner, 0))

    def refusal(self, owner: str, nbytes: int, before: int = 0) -> HopfuseError:
        """Return the refusal of bytes for which there is no room: 429, or 400 if one request would hold too much.

        ``before`` is what the request holds already.
        """
        own, least = self._owners.get(owner, 0), min(self._most, self._most_each)
        if before + nbytes > least:
            return InputError(
                "limit",
                None,
                "the request takes {given} bytes of memory, and {allowed} are allowed ({limit} of the server); send "
                "less at a time, or ask for fewer hits or fields",
                given=before + nbytes,
                allowed=least,
                limit="limits.key_bytes" if least == self._most_each else "limits.queue_bytes",
            )
        if nbytes > self._most_each - own:
            return RefusalError(
                "overloaded",
                None,
                "requests of this key hold {nbytes} bytes until they are answered, and {allowed} are allowed ({limit} "
                "of the server); send the request again after Retry-After, or less at a time",
                nbytes=own,
                allowed=self._most_each,
                limit="limits.key_bytes",
            ).after(1)
        return RefusalError(
            "overloaded",
            None,
            "requests hold {nbytes} bytes until they are answered, and {allowed} are allowed ({limit} of the server); "
            "send the request again after Retry-After",
            nbytes=self.nbytes,
            allowed=self._most,
            limit="limits.queue_bytes",
        ).after(1)

    def count(self, owner: str, nbytes: int) -> None:
        """Add bytes to an owner, or take them away."""
        self.nbytes += nbytes
        left = self._owners.get(owner, 0) + nbytes
        if left:
            self._owners[owner] = left
        else:
            self._owners.pop(owner, None)


class Held:
    """The bytes of one request, which are given back when all that share them have released them."""

    __slots__ = ("_budget", "_sharing", "nbytes", "owner")

    def __init__(self, budget: ByteBudget, owner: str) -> None:
        self._budget, self.owner, self.nbytes, self._sharing = budget, owner, 0, 1

    def check(self, nbytes: int) -> None:
        """Refuse more bytes for which there is no room; callable from any thread.

        Raises
        ------
        HopfuseError
            See :meth:`ByteBudget.refusal`.
        """
        if nbytes > self._budget.room(self.owner):
            raise self._budget.refusal(self.owner, nbytes, self.nbytes)

    def add(self, nbytes: int) -> None:
        """Hold more bytes; see :meth:`check`."""
        self.check(nbytes)
        self._budget.count(self.owner, nbytes)
        self.nbytes += nbytes

    def correct(self, before: int, nbytes: int) -> None:
        """Hold other bytes in place of some that are held; see :meth:`check`."""
        if nbytes > before:
            self.add(nbytes - before)
        else:
            self._budget.count(self.owner, nbytes - before)
            self.nbytes += nbytes - before

    def share(self) -> Held:
        """Keep the bytes until one more release, for work that may outlast the request."""
        self._sharing += 1
        return self

    def release(self) -> None:
        """Give the bytes back, unless others share them."""
        self._sharing -= 1
        if not self._sharing:
            self._budget.count(self.owner, -self.nbytes)
            self.nbytes = 0
