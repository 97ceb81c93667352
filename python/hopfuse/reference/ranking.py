"""Ranked lists with float64 scores, in the library's total order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_dtype, check_ids, check_length, check_shape

__all__ = ["Ranking"]

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


def node_mask(chosen: Any, name: str, batch: int, n: int) -> NDArray[np.bool_]:
    """Return a boolean mask, (batch, n), of the items that each query may return.

    Parameters
    ----------
    chosen : None, bools (n,) or (batch, n), ids (m,) or (batch, m), where -1 is padding, or `batch` such rows
        None selects all.
    """
    if chosen is None:
        return np.ones((batch, n), bool)
    if not _per_query(chosen):
        return np.broadcast_to(_one_mask(chosen, name, n), (batch, n))
    check_length(len(chosen), name, batch, "query")
    is_padded = isinstance(chosen, np.ndarray) and chosen.dtype != bool
    rows = [row[row != PAD_ID] for row in chosen] if is_padded else chosen
    return np.array([_one_mask(row, name, n) for row in rows], bool).reshape(batch, n)


def _per_query(chosen: Any) -> bool:
    if isinstance(chosen, np.ndarray):
        return chosen.ndim == 2
    return isinstance(chosen, (list, tuple)) and any(isinstance(row, (list, tuple, np.ndarray)) for row in chosen)


def _one_mask(chosen: Any, name: str, n: int) -> NDArray[np.bool_]:
    array = np.asarray(chosen)
    if array.dtype == bool and array.shape == (n,):
        return array
    check_dtype(array, name, "iu", "ids, or booleans for each node")
    check_shape(array.shape, name, ("m",))
    check_ids(array, name, n)
    mask = np.zeros(n, bool)
    mask[array.astype(np.int64)] = True
    return mask
