"""A cache of values by sets of rows, the last ones used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class RowsCache(Generic[T]):
    """Keeps what is made for some rows of ``most``, as long as all that is kept is of no more rows than these.

    So a whole that is cut in parts that do not overlap, as tenants' passages are, is kept in all its parts.

    Examples
    --------
    >>> import numpy as np
    >>> kept = RowsCache(3)
    >>> kept.get(np.array([True, False, True]), lambda: "made"), kept.get(np.array([True, False, True]), lambda: "anew")
    ('made', 'made')
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._parts: OrderedDict[bytes, tuple[int, T]] = OrderedDict()

    def get(self, rows: NDArray[np.bool_], make: Callable[[], T]) -> T:
        """Return what is kept for some rows, a mask; where nothing is, what is made now."""
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
