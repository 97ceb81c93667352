"""Compressed rows (CSR): an indptr, and values that ascend within a row; the numbers of rows in parts and states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

#: Numbers of no row that a table keeps at least, before it is made anew.
LEAST_UNUSED = 1000


def check_array(array: Any, name: str, dtype: Any) -> None:
    """Raise unless a kernel can read the array in place: one-dimensional, of this dtype, contiguous and aligned."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        given = f"{array.dtype}{array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError(
            "dtype",
            name,
            "{field} is {given}; it must be a one-dimensional array of {allowed}",
            given=given,
            allowed=str(np.dtype(dtype)),
        )
    if not array.flags.c_contiguous:
        raise InputError("shape", name, "{field} is not contiguous; pass np.ascontiguousarray({field})")
    if not array.flags.aligned:
        raise InputError("shape", name, "{field} is not aligned in memory; pass {field}.copy()")


def check_indptr(indptr: NDArray[Any], entries: int) -> None:
    """Raise unless an indptr ascends from 0 to the number of entries."""
    if not indptr.size or indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
        raise InputError(
            "order", "indptr", "{field} must ascend from 0 to {entries}, the number of entries", entries=entries
        )


def check_range(entries: NDArray[Any], field: str, limit: int) -> None:
    """Raise unless entries are in 0 .. limit - 1."""
    if entries.size and (entries.min() < 0 or entries.max() >= limit):
        raise InputError("range", field, "{field} hold a number outside 0 .. {last}", last=limit - 1)


def check_ascending(entries: NDArray[Any], field: str, indptr: NDArray[Any]) -> None:
    """Raise unless the entries of every row are strictly ascending."""
    if not ascends(entries, indptr):
        raise InputError("order", field, "{field} do not ascend strictly within a row")


def ascends(values: NDArray[Any], indptr: NDArray[Any]) -> bool:
    """Return whether the values of every row are strictly ascending."""
    falls = np.flatnonzero(values[1:] <= values[:-1]) + 1
    begins = np.zeros(values.size + 1, np.bool_)
    begins[indptr] = True
    return bool(begins[falls].all())


def indptr_of(rows: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the indptr of ``count`` rows, from the row number of each entry."""
    return indptr_of_counts(np.bincount(rows, minlength=count))


def indptr_of_counts(counts: NDArray[Any] | Sequence[int]) -> NDArray[np.int64]:
    """Return the indptr of rows with these numbers of entries."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


def entries_of(
    indptr: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the concatenated values of these rows, and the number of values of each.

    Examples
    --------
    >>> import numpy as np
    >>> entries_of(np.array([0, 2, 3]), np.array([7, 8, 9]), np.array([1, 0]))
    (array([9, 7, 8]), array([1, 2]))
    """
    begin, count = indptr[rows], indptr[rows + 1] - indptr[rows]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return values[np.repeat(begin, count) + within], count


class PartNumbers:
    """The numbers of rows in a part, which are their places among the rows that it has; nothing is copied.

    Parameters
    ----------
    rows : ndarray of int64
        The rows of the part, ascending.
    before : PartNumbers or StateNumbers, optional
        For a part of a part, or of a state of a table: the numbers in the other one, which ``rows`` has.

    Examples
    --------
    >>> numbers = PartNumbers(np.array([2, 5, 7]))
    >>> numbers.get(5), numbers.get(6), numbers.of([7, 0, 2])
    (1, -1, [2, 0])
    >>> PartNumbers(np.array([1, 2]), numbers).of([2, 5, 7])
    [0, 1]
    """

    __slots__ = ("_before", "_rows")

    def __init__(self, rows: NDArray[np.int64], before: RowNumbers | None = None) -> None:
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


class _Lineage:
    """The states of a table that continue one another: how many numbers they have given to rows."""

    __slots__ = ("_lock", "size")

    def __init__(self, size: int) -> None:
        self._lock, self.size = Lock(), size

    def extend(self, size: int, count: int) -> bool:
        """Give numbers to the new rows of a state that continues one of a size, unless another state did so."""
        with self._lock:
            if self.size != size:
                return False
            self.size += count
            return True


class StateNumbers:
    """The rows that a state of a changing table has under numbers which its rows keep in later states.

    What is kept by number, such as the keys of names, then serves all states: rows may move, and numbers do not. A
    number is never used again.

    Parameters
    ----------
    rows : ndarray of int64, shape (S,)
        The row of each number that was given so far, -1 for one that the state does not have.

    Examples
    --------
    >>> first = StateNumbers.of_rows(3)
    >>> later = first.continued(np.array([0, -1, 2]), 4)
    >>> later.rows, later.since(first), later.of([2, 1, 4])
    (array([ 0, -1,  2,  1,  3]), array([3, 4]), [2, 3])
    """

    __slots__ = ("_lineage", "_lost", "rows")

    def __init__(self, rows: NDArray[np.int64], lineage: _Lineage) -> None:
        self.rows, self._lineage = rows, lineage
        self._lost = True  # whether a number may have another row than its own, or none

    @classmethod
    def of_rows(cls, count: int) -> StateNumbers:
        """Return the numbers of a table that continues no other one: those of its rows."""
        return cls._own_rows(count, _Lineage(count))

    @classmethod
    def _own_rows(cls, count: int, lineage: _Lineage) -> StateNumbers:
        """Return the numbers of a state in which each row has its own number."""
        made = cls(np.arange(count, dtype=np.int64), lineage)
        made._lost = False
        return made

    def continued(self, rows: NDArray[np.int64], count: int) -> StateNumbers | None:
        """Return the numbers of a later state.

        It is None if another state has continued this one already, and if most numbers would be those of no row, so
        that what is kept by number stays in proportion to the table.

        Parameters
        ----------
        rows : ndarray of int64
            The later state's row for each row of this one, -1 for those that it does not have.
        count : int
            The number of rows of the later state.
        """
        if not self._lost and (rows == self.rows).all():
            is_next = self._lineage.extend(rows.size, count - rows.size)
            return self._own_rows(count, self._lineage) if is_next else None
        kept = np.where(self.rows >= 0, rows[self.rows], -1) if rows.size else np.full(self.rows.size, -1, np.int64)
        known = np.zeros(count, np.bool_)
        known[kept[kept >= 0]] = True
        fresh = np.flatnonzero(~known)
        unused = kept.size - (count - fresh.size)
        if unused > max(LEAST_UNUSED, count) or not self._lineage.extend(self.rows.size, fresh.size):
            return None
        return StateNumbers(np.concatenate([kept, fresh]), self._lineage)

    def since(self, earlier: StateNumbers) -> NDArray[np.int64] | None:
        """Return the numbers of the rows that an earlier state does not have; None for one of another lineage."""
        if earlier._lineage is not self._lineage or earlier.rows.size > self.rows.size:
            return None
        return np.flatnonzero(self.rows[earlier.rows.size :] >= 0) + earlier.rows.size

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the rows that the state has, ascending."""
        return np.flatnonzero(self.rows >= 0)

    def get(self, number: int) -> int:
        """Return the row of a number, -1 if the state does not have it."""
        return int(self.rows[number]) if number < self.rows.size else -1

    def of(self, numbers: Iterable[int]) -> list[int]:
        """Return the rows of those numbers that the state has, in their order."""
        return [row for row in map(self.get, numbers) if row >= 0]


RowNumbers = PartNumbers | StateNumbers
