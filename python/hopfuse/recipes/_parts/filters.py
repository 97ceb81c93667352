"""Filters: the passages that the questions of a batch may find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.filters import is_per_query, read_filter
from ...errors import InputError
from ...index import Index, Where
from ...types import Hits
from ...types.hits import PAD_ID
from ..protocol import AllowScope
from .config import check_choice


@dataclass(frozen=True, eq=False)
class View:
    """The passages that questions may find. There is a group for each distinct set; question b is in group ``of[b]``.

    Attributes
    ----------
    of : ndarray of int64, shape (B,)
    passages : ndarray of bool, shape (G, P)
    num_nodes : int
        Nodes of the graph, including passages; 0 without a graph.
    """

    of: NDArray[np.int64]
    passages: NDArray[np.bool_]
    num_nodes: int

    @property
    def allow(self) -> NDArray[np.bool_]:
        """The passages as operations take them: (P,) if all questions have the same, else (B, P)."""
        return self._by_question(self.passages)

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """Nodes that a walk may rank: the passages."""
        others = ((0, 0), (0, max(0, self.num_nodes - self.passages.shape[1])))
        return self._by_question(np.pad(self.passages, others))

    def num_allowed(self, query: int) -> int:
        """Return the number of passages that a question may find."""
        return int(self.passages[self.of[query]].sum())

    def _by_question(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows[0] if len(rows) == 1 else rows[self.of]


class Views:
    """Read the filters of searches over an index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def read(self, allow: Any, batch: int, scope: AllowScope) -> View | None:
        """Return the view for ``allow=``, or None without a filter.

        Parameters
        ----------
        allow : bool (P,) or (B, P), rows, passages' ids, a Where, or a sequence of B of them, optional
        batch : int
        scope : {"isolated", "results"}
        """
        check_choice(scope, "allow_scope", ("isolated", "results"))
        if allow is None:
            return None
        allow = self._without_where(allow)
        if is_per_query(allow):
            allow = [self._rows(row, f"allow[{b}]") for b, row in enumerate(allow)]
        else:
            allow = self._rows(allow, "allow")
        num_passages = self._index.num_passages
        masks = read_filter(allow, batch, num_passages, "allow").to_masks(num_passages)
        groups: dict[bytes, int] = {}
        numbers = [groups.setdefault(row.tobytes(), len(groups)) for row in np.packbits(masks, axis=1)]
        passages = masks[[numbers.index(group) for group in range(len(groups))]]
        of = np.array(numbers * batch if len(masks) == 1 else numbers, np.int64)
        graph = self._index.graph
        return View(of, passages, graph.num_nodes if graph else 0)

    def _without_where(self, given: Any) -> Any:
        """Replace filters by metadata with masks, for all questions or for each."""
        if isinstance(given, Where):
            return self._index.mask(given)
        if isinstance(given, Sequence) and not isinstance(given, str):
            return [self._index.mask(one) if isinstance(one, Where) else one for one in given]
        return given

    def _rows(self, given: Any, name: str) -> Any:
        """Replace passage ids with rows; masks and rows are returned as they are."""
        if isinstance(given, str):
            raise InputError(f"{name} is the string {given!r}; give a list of passage ids: [{given!r}]")
        several = isinstance(given, Sequence | np.ndarray) and len(given) > 0
        if several and all(isinstance(one, str) for one in given):
            return self._index.rows_of(given)
        last, rows = _largest(given) if several else 0, self._index.num_passages
        if last >= rows:
            raise InputError(
                f"{name} has row {last}; rows are 0 .. {rows - 1}. For ids of passages that are integers, give "
                "index.rows_of(ids)"
            )
        return given


def _largest(rows: Sequence[Any] | NDArray[Any]) -> int:
    """Return the largest of rows, or 0 if they are something else."""
    if isinstance(rows, np.ndarray):
        return int(rows.max()) if rows.dtype.kind in "iu" else 0
    numbers = all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in rows)
    return max(map(int, rows)) if numbers else 0


def only(hits: Hits, allow: NDArray[np.bool_] | None) -> Hits:
    """Return the allowed hits in their order; ``allow`` is a mask (P,) or (B, P), or None for all."""
    if allow is None:
        return hits
    held = np.arange(hits.shape[1]) < hits.counts[:, None]
    rows = np.broadcast_to(allow, (len(hits), allow.shape[-1]))
    held &= np.take_along_axis(rows, np.where(held, hits.ids, 0), axis=1)
    return Hits(np.where(held, hits.ids, PAD_ID), hits.scores)
