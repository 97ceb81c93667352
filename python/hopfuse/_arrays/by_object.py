"""Values that are made once for an object, and kept as long as the object is."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

K = TypeVar("K")
T = TypeVar("T")


class ByObject(Generic[K, T]):
    """The value of a function for each object, which is hashed as in a dict and not kept alive. Thread-safe.

    Threads that ask for the same object wait for one of them to make its value.

    Examples
    --------
    >>> class Text(str):
    ...     pass
    >>> lengths, text = ByObject(len), Text("four")
    >>> lengths.get(text), len(lengths)
    (4, 1)
    >>> del text
    >>> len(lengths)
    0
    """

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make, self._lock = make, Lock()
        self._made: WeakKeyDictionary[K, list[T]] = WeakKeyDictionary()
        self._making: WeakKeyDictionary[K, Lock] = WeakKeyDictionary()

    def get(self, of: K) -> T:
        """Return the value of an object, made at the first call."""
        with self._lock:
            known, making = self._made.get(of), self._making.setdefault(of, Lock())
        if known is None:
            with making:
                known = self._made.get(of) or [self._make(of)]
                with self._lock:
                    self._made[of] = known
        return known[0]

    def __len__(self) -> int:
        """Return the number of objects that have a value."""
        return len(self._made)
