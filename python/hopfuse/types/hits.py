"""Ranked lists, one row per query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays.convert import to_numpy
from .._validation import as_int64, check_dtype, check_k, check_real, wrong_value
from ..errors import InputError

PAD_ID = -1
PAD_SCORE = np.float32(-np.inf)
#: The queries, and the hits of a query, that a printed text shows.
_SHOWN = 10


@dataclass(frozen=True, eq=False, init=False)
class Hits:
    """Ranked lists for a batch of queries: row b holds the hits of query b.

    The constructor sorts each row by descending score, then ascending id. Calibration keeps the order of its input,
    even where it creates ties.

    Parameters
    ----------
    ids : array_like of int, shape (B, k) or (k,)
        Document or node ids, at least 0 and unique within a row; -1 is padding.
    scores : array_like of float, shape (B, k) or (k,)
        A finite score for each id, stored as float32; scores at padding are ignored.
    counts : array_like of int, shape (B,), optional
        The number of leading entries of each row that are valid. By default, entries with id != -1 are.

    Raises
    ------
    InputError
        Shapes that differ, ids below -1 or repeated in a row, scores that are NaN or infinite,
        counts outside 0 .. k.

    Examples
    --------
    >>> import hopfuse as hf
    >>> h = hf.Hits([[7, 3, 5]], [[0.5, 0.9, 0.5]])
    >>> h.ids
    array([[3, 5, 7]])
    >>> h.counts
    array([3])
    >>> print(h)
    Hits(queries=1, k=3, valid=3)
    0: 3 0.9, 5 0.5, 7 0.5
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]

    def __init__(self, ids: ArrayLike, scores: ArrayLike, counts: ArrayLike | None = None) -> None:
        id_array, score_array, count_array = _checked(ids, scores, counts)
        vars(self).update(ids=id_array, scores=score_array, counts=count_array)  # the dataclass is frozen

    @classmethod
    def unchecked(cls, ids: Any, scores: Any, counts: Any, **more: Any) -> Hits:
        """Wrap the output of a kernel, without the constructor's checks."""
        hits = object.__new__(cls)
        vars(hits).update(ids=ids, scores=scores, counts=counts, **more)
        return hits

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[tuple[int, float]]]) -> Hits:
        """Build hits from one list of (id, score) pairs per query; rows may differ in length.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Hits.from_lists([[(4, 0.2), (1, 0.8)], []]).counts
        array([2, 0])
        """
        pairs = [list(row) for row in rows]
        width = max((len(row) for row in pairs), default=0)
        found = pad_rows([([node for node, _ in row], [score for _, score in row]) for row in pairs], width)
        return cls(found.ids, found.scores, found.counts)

    @property
    def shape(self) -> tuple[int, int]:
        """(B, k): the number of queries and the width of a row."""
        return (int(self.ids.shape[0]), int(self.ids.shape[1]))

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def row(self, query: int) -> list[tuple[int, float]]:
        """Return the valid (id, score) pairs of one query, best first."""
        n = int(self.counts[query])
        return list(zip(self.ids[query, :n].tolist(), self.scores[query, :n].tolist(), strict=True))

    def head(self, k: int) -> Hits:
        """Return the first k hits of every row, as a view; shorter rows are unchanged."""
        k = check_k(k)
        return Hits.unchecked(self.ids[:, :k], self.scores[:, :k], np.minimum(self.counts, k))

    def __repr__(self) -> str:
        b, k = self.shape
        return f"{type(self).__name__}(queries={b}, k={k}, valid={int(np.asarray(self.counts).sum())})"

    def __str__(self) -> str:
        shown = [f"{query}: {self._line(query)}" for query in range(min(len(self), _SHOWN))]
        more = [f"… {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return "\n".join((repr(self), *shown, *more))

    def _line(self, query: int) -> str:
        """Return the best hits of a query, as id and score."""
        row = self.row(query)
        shown = [f"{id} {score:.5g}" for id, score in row[:_SHOWN]]
        return ", ".join(shown + ([f"… {len(row) - _SHOWN:,} more"] if len(row) > _SHOWN else [])) or "none"


def pad_rows(rows: Sequence[tuple[Any, Any]], width: int) -> Hits:
    """Return unchecked Hits of one (ids, scores) pair per query, padded to ``width``, which no pair may exceed."""
    ids, scores = np.full((len(rows), width), PAD_ID, np.int64), np.full((len(rows), width), PAD_SCORE, np.float32)
    for b, (found, values) in enumerate(rows):
        ids[b, : len(found)], scores[b, : len(found)] = found, values
    return Hits.unchecked(ids, scores, np.array([len(found) for found, _ in rows], np.int64))


def _checked(
    ids: ArrayLike, scores: ArrayLike, counts: ArrayLike | None
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    raw = to_numpy(ids, "ids")
    check_dtype(raw, "ids", "iu", "integers")
    i = _as_rows(as_int64(raw, "ids"))
    given = to_numpy(scores, "scores")
    check_real(given, "scores")
    with np.errstate(over="ignore", invalid="ignore"):
        s = _as_rows(given.astype(np.float32, copy=False))
    if i.shape != s.shape or i.ndim != 2:
        raise InputError(
            "shape",
            "ids",
            "{field} have the shape {given}, and {@scores} {other}; both must be (B, k), one row per query",
            given=i.shape,
            other=s.shape,
        )
    b, k = i.shape
    if counts is None:
        valid = i != PAD_ID
        c = valid.sum(axis=1, dtype=np.int64)
    else:
        lengths = np.atleast_1d(to_numpy(counts, "counts"))
        check_dtype(lengths, "counts", "iu", "integers")
        c = as_int64(lengths, "counts")
        if c.shape != (b,) or (b and (c.min() < 0 or c.max() > k)):
            raise wrong_value(c.tolist(), "counts", f"{b} numbers from 0 to {k}, one per query", "shape")
        valid = np.arange(k) < c[:, None]
    if np.count_nonzero(valid & ~((i >= 0) & np.isfinite(s))):
        _refuse(i, s, valid)
    i, s = np.where(valid, i, PAD_ID), np.where(valid, s, PAD_SCORE)
    order = np.lexsort((i, -s, ~valid), axis=-1)
    rows = np.arange(b)[:, None]
    i, s = i[rows, order], s[rows, order]
    ranked = np.sort(i, axis=1)
    twice = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != PAD_ID)
    if np.count_nonzero(twice):
        q = int(np.argwhere(twice)[0][0])
        raise InputError(
            "duplicate",
            f"ids[{q}]",
            "{field} has {given} more than once; ids are unique within a row",
            given=int(ranked[q, 1:][twice[q]][0]),
        )
    return i, s, c


def _as_rows(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.ndim > 1 else np.atleast_2d(array)


def _refuse(i: NDArray[np.int64], s: NDArray[np.float32], valid: NDArray[np.bool_]) -> None:
    bad = valid & (i < 0)
    if bad.any():
        q, p = map(int, np.argwhere(bad)[0])
        raise wrong_value(int(i[q, p]), f"ids[{q}, {p}]", "at least 0 (-1 is padding, beyond counts)")
    q, p = map(int, np.argwhere(valid & ~np.isfinite(s))[0])
    raise wrong_value(float(s[q, p]), f"scores[{q}, {p}]", "a finite float32 number", "finite")
