"""Filters: the passages that the questions of a batch may find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_choice
from ...index import Index
from ...index.search_filter import read_allow
from ...types import Hits
from ...types.hits import PAD_ID
from ..protocol import AllowScope


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
        allow : Where, ids of passages, bool (P,) or (B, P), or a sequence of B of these or None, optional
        batch : int
        scope : {"isolated", "results"}
        """
        check_choice(scope, "allow_scope", ("isolated", "results"))
        if allow is None:
            return None
        masks = read_allow(self._index, allow, batch)
        groups: dict[bytes, int] = {}
        numbers = [groups.setdefault(row.tobytes(), len(groups)) for row in np.packbits(masks, axis=1)]
        passages = masks[[numbers.index(group) for group in range(len(groups))]]
        of = np.array(numbers * batch if len(masks) == 1 else numbers, np.int64)
        graph = self._index.graph
        return View(of, passages, graph.num_nodes if graph else 0)


def only(hits: Hits, allow: NDArray[np.bool_] | None) -> Hits:
    """Return the allowed hits in their order; ``allow`` is a mask (P,) or (B, P), or None for all."""
    if allow is None:
        return hits
    held = np.arange(hits.shape[1]) < hits.counts[:, None]
    rows = np.broadcast_to(allow, (len(hits), allow.shape[-1]))
    held &= np.take_along_axis(rows, np.where(held, hits.ids, 0), axis=1)
    return Hits(np.where(held, hits.ids, PAD_ID), hits.scores)
