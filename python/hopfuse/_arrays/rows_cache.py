"""A least-recently-used cache of values by sets of rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class RowsCache(Generic[T]):
    """An LRU cache of values computed for subsets of rows, limited by the total number of rows of its keys.

    With ``most`` the number of all rows, a partition of them, such as the passages of each tenant, fits entirely.

    Examples
    --------
    >>> import numpy as np
    >>> cache = RowsCache(3)
    >>> rows = np.array([True, False, True])
    >>> cache.get(rows, lambda: "first"), cache.get(rows, lambda: "second")
    ('first', 'first')
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._parts: OrderedDict[bytes, tuple[int, T]] = OrderedDict()

    def get(self, rows: NDArray[np.bool_], make: Callable[[], T]) -> T:
        """Return the cached value for a mask of rows, or compute it with ``make``."""
        key = np.packbits(rows).tobytes()
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
                return self._parts[key][1]
        made = make()
        with self._lock:
            self._parts[key] = int(rows.sum()), made
            while len(self._parts) > 1 and sum(size for size, _ in self._parts.values()) > self._most:
                self._parts.popitem(last=False)
        return made
