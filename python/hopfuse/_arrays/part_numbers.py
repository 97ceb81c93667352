"""The numbers that rows have in a part."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class PartNumbers:
    """The numbers of rows in a part, which are their places among the rows that it has; nothing is copied.

    Parameters
    ----------
    rows : ndarray of int64
        The rows of the part, ascending.
    before : PartNumbers, optional
        For a part of a part: the numbers in the other one, which ``rows`` has.

    Examples
    --------
    >>> numbers = PartNumbers(np.array([2, 5, 7]))
    >>> numbers.get(5), numbers.get(6), numbers.of([7, 0, 2])
    (1, -1, [2, 0])
    >>> PartNumbers(np.array([1, 2]), numbers).of([2, 5, 7])
    [0, 1]
    """

    __slots__ = ("_before", "_rows")

    def __init__(self, rows: NDArray[np.int64], before: PartNumbers | None = None) -> None:
        self._rows, self._before = rows, before

    def get(self, row: int) -> int:
        """Return the number of a row, -1 if the part does not have it."""
        if self._before is not None:
            row = self._before.get(row)
        at = int(np.searchsorted(self._rows, row))
        return at if at < self._rows.size and self._rows[at] == row else -1

    def of(self, rows: Iterable[int]) -> list[int]:
        """Return the numbers of those rows that the part has, in their order."""
        return [number for number in map(self.get, rows) if number >= 0]
