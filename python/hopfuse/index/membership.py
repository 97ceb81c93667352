"""Test which numbers of a column, or rows of numbers, are in a set.

Numbers are looked up in a small set with a collision-free multiplicative hash, in one pass.

``np.isin`` sorts the column, which takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Multipliers that are tried. A table is larger than the square of the set, so most multipliers have no collision.
TRIES = 64
_LEAST_BITS, _MOST_BITS = 10, 18
_BLOCK = 1 << 16
#: 2^64 divided by the golden ratio, odd, which spreads numbers evenly (Fibonacci hashing).
_SPREAD = 0x9E3779B97F4A7C15


def is_in(data: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of a column are in a set of numbers.

    Parameters
    ----------
    data : ndarray of int64 or float64, shape (n,)
        Without NaN.
    wanted : ndarray of the same dtype, shape (m,)

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> is_in(np.array([3, 1, 4, 1, 5]), np.array([1, 5]))
    array([False,  True, False,  True,  True])
    """
    numbers = np.unique(wanted + wanted.dtype.type(0))  # -0.0 becomes 0.0, which has a test of its own below
    table = _table(numbers)
    if table is None:
        return np.isin(data, numbers)
    held, multiplier, shift = table
    found, place, other = np.empty(data.size, np.bool_), np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, data.dtype)
    for first in range(0, data.size, _BLOCK):
        block = data[first : first + _BLOCK]
        at, taken = place[: block.size], other[: block.size]
        np.multiply(block.view(np.uint64), multiplier, out=at)
        np.right_shift(at, shift, out=at)
        np.take(held, at.view(np.int64), out=taken, mode="clip")
        np.equal(taken, block, out=found[first : first + _BLOCK])
    if data.dtype.kind == "f" and (numbers == 0).any():
        found |= data == 0
    return found


def deleted_later(
    rows: NDArray[Any], batch: NDArray[np.int64], gone: NDArray[np.int64], when: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which rows of numbers are deleted by a later batch.

    Parameters
    ----------
    rows : ndarray of int64, shape (n, k)
    batch : ndarray of int64, shape (n,)
        When each row came.
    gone : ndarray of int64, shape (m, k)
        Deleted rows.
    when : ndarray of int64, shape (m,)
        When each was deleted; a row that came in the same batch stays.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> deleted_later(np.array([[1, 2], [1, 2], [3, 4]]), np.array([0, 5, 0]), np.array([[1, 2]]), np.array([4]))
    array([ True, False, False])
    """
    deleted = np.zeros(len(rows), np.bool_)
    if not len(gone):
        return deleted
    near = np.flatnonzero(is_in(np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(gone[:, 0])))
    _, same = np.unique(np.concatenate([rows[near], gone]), axis=0, return_inverse=True)
    same = same.reshape(-1)
    last = np.full(same.max() + 1, -1)
    np.maximum.at(last, same[near.size :], when)
    deleted[near] = last[same[: near.size]] > batch[near]
    return deleted


def _table(numbers: NDArray[Any]) -> tuple[NDArray[Any], np.uint64, np.uint64] | None:
    """Return a hash table, its multiplier and its shift, or None if there is none without collisions."""
    bits = max(_LEAST_BITS, 2 * numbers.size.bit_length())
    if not numbers.size or bits > _MOST_BITS:
        return None
    shift = np.uint64(64 - bits)
    for turn in range(TRIES):
        multiplier = np.uint64(_SPREAD * (2 * turn + 1) % 2**64)
        places = (numbers.view(np.uint64) * multiplier) >> shift
        if np.unique(places).size == places.size:
            held = np.full(1 << bits, numbers[0])
            held[places.view(np.int64)] = numbers
            return held, multiplier, shift
    return None
