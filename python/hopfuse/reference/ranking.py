"""Ranked lists with float64 scores, in the library's total order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

PAD_ID = -1


@dataclass(frozen=True, eq=False)
class Ranking:
    """:class:`hopfuse.Hits` with float64 scores.

    Attributes
    ----------
    ids : ndarray of int64, shape (B, k)
        Padded with -1.
    scores : ndarray of float64, shape (B, k)
        Padded with -inf.
    counts : ndarray of int64, shape (B,)
        The number of leading entries of each row that are valid.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[NDArray[np.int64], NDArray[np.float64]]], k: int) -> Ranking:
        """Pad B rows of (ids, scores), at most k long, to shape (B, k)."""
        pairs = list(rows)
        ids = np.full((len(pairs), k), PAD_ID, np.int64)
        scores = np.full((len(pairs), k), -np.inf, np.float64)
        for b, (row_ids, row_scores) in enumerate(pairs):
            ids[b, : row_ids.size], scores[b, : row_ids.size] = row_ids, row_scores
        return cls(ids, scores, np.array([row_ids.size for row_ids, _ in pairs], np.int64))

    def row(self, query: int) -> list[tuple[int, float]]:
        """Return the valid (id, score) pairs of one query, best first."""
        n = int(self.counts[query])
        return [(int(i), float(s)) for i, s in zip(self.ids[query, :n], self.scores[query, :n], strict=True)]

    def __len__(self) -> int:
        return int(self.ids.shape[0])


def best(ids: NDArray[np.int64], scores: NDArray[np.float64], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the first k of (ids, scores) in total order: higher score first, then lower id.

    Examples
    --------
    >>> import numpy as np
    >>> best(np.array([7, 3, 5]), np.array([0.5, 0.9, 0.5]), 2)
    (array([3, 5]), array([0.9, 0.5]))
    """
    order = np.lexsort((ids, -scores))[:k]
    return ids[order], scores[order]


def check_k(k: Any) -> int:
    """Return k as an int, at least 0."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
        raise InputError("range", "k", "{field} is {given!r}; it must be an integer, at least 0", given=k)
    return int(k)


def node_mask(chosen: Any, name: str, batch: int, n: int) -> NDArray[np.bool_]:
    """Return a boolean mask, (batch, n), of the items that each query may return.

    Parameters
    ----------
    chosen : None, bools (n,), ids (m,), or a sequence of `batch` such rows
        None selects all.
    """
    if chosen is None:
        return np.ones((batch, n), bool)
    if not _per_query(chosen):
        return np.broadcast_to(_one_mask(chosen, name, n), (batch, n))
    if len(chosen) != batch:
        raise InputError(
            "length",
            name,
            "{field} has {number} rows for {batch} queries; pass one per query, or one for all",
            number=len(chosen),
            batch=batch,
        )
    return np.array([_one_mask(row, name, n) for row in chosen], bool).reshape(batch, n)


def _per_query(chosen: Any) -> bool:
    if isinstance(chosen, np.ndarray):
        return chosen.ndim == 2
    return isinstance(chosen, (list, tuple)) and any(isinstance(row, (list, tuple, np.ndarray)) for row in chosen)


def _one_mask(chosen: Any, name: str, n: int) -> NDArray[np.bool_]:
    array = np.asarray(chosen)
    if array.dtype == bool and array.shape == (n,):
        return array
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            "shape",
            name,
            "{field} is {dtype}{shape}; it must be booleans of shape ({n},) or one-dimensional ids",
            dtype=array.dtype,
            shape=array.shape,
            n=n,
        )
    if array.size and (int(array.min()) < 0 or int(array.max()) >= n):
        raise InputError(
            "UNSORTED",
            name,
            "{field} holds ids from {min} to {max}; ids are 0 .. {n}",
            min=array.min(),
            max=array.max(),
            n=n - 1,
        )
    mask = np.zeros(n, bool)
    mask[array.astype(np.int64)] = True
    return mask
