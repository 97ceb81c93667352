"""Results that are kept within a bound."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: The sum of the sizes of what is kept, and what each entry adds to its own size.
MOST, EACH = 1 << 19, 64


class Kept(Generic[K, V]):
    """Keeps results until their sizes add up to a bound, and then starts over; threads may share it.

    Examples
    --------
    >>> kept = Kept()
    >>> kept.keep("a", 0.5, 1)
    >>> kept.get("a"), kept.get("b")
    (0.5, None)
    """

    def __init__(self) -> None:
        self._known, self._size = dict[K, V](), 0

    def get(self, key: K) -> V | None:
        """Return what is kept for a key, or None."""
        return self._known.get(key)

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep a value for a key; one that is larger than the bound is not kept."""
        size += EACH
        if size > MOST:
            return
        if self._size + size > MOST:
            self._known, self._size = {}, 0
        self._known[key] = value
        self._size += size
