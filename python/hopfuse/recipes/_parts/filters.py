"""Passages that the questions of a batch may find, and what of the graph each question then sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.filters import is_per_query, read_filter
from ..._arrays.rows import entries_of
from ...errors import InputError
from ...index import Index, Where
from ...types import Hits, Incidence
from ...types.hits import PAD_ID
from ..protocol import AllowScope
from .config import check_choice


@dataclass(frozen=True, eq=False)
class View:
    """The passages that questions may find: question b is of group ``of[b]``, one for each distinct set of passages.

    Attributes
    ----------
    of : ndarray of int64, shape (B,)
    passages : ndarray of bool, shape (G, P)
    frequency : ndarray of int64, shape (G, E), or None
        Passages of the group that each entity is in; None where all questions share the whole graph
        (``allow_scope="results"``), or where there is none.
    num_nodes : int
        Nodes of the graph, passages among them; 0 where there is none.
    """

    of: NDArray[np.int64]
    passages: NDArray[np.bool_]
    frequency: NDArray[np.int64] | None
    num_nodes: int

    @property
    def allow(self) -> NDArray[np.bool_]:
        """The passages, as operations take them: (P,) where all questions have the same, else (B, P)."""
        return self._by_question(self.passages)

    @property
    def alone(self) -> NDArray[np.bool_] | None:
        """The passages that a question's answer may be made of, as ``allow``. None: all, whatever may be found."""
        return None if self.frequency is None else self.allow

    @property
    def nodes(self) -> NDArray[np.bool_] | None:
        """Nodes that a walk may hold mass on: the passages and the entities next to them. None: all."""
        if self.frequency is None:
            return None
        return self._by_question(np.concatenate([self.passages, self.frequency > 0], axis=1))

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """Nodes that a walk may rank: the passages."""
        others = ((0, 0), (0, max(0, self.num_nodes - self.passages.shape[1])))
        return self._by_question(np.pad(self.passages, others))

    @property
    def node_frequency(self) -> NDArray[np.int64] | None:
        """Passages that each node is in, 0 for a passage: (N,) or (B, N); None: as in the whole graph."""
        if self.frequency is None:
            return None
        return self._by_question(np.pad(self.frequency, ((0, 0), (self.passages.shape[1], 0))))

    def group(self, number: int, batch: int) -> View:
        """Return the view of one group, of so many questions."""
        frequency = None if self.frequency is None else self.frequency[number : number + 1]
        return View(np.zeros(batch, np.int64), self.passages[number : number + 1], frequency, self.num_nodes)

    def num_allowed(self, query: int) -> int:
        """Return how many passages a question may find."""
        return int(self.passages[self.of[query]].sum())

    def frequency_of(self, query: int) -> NDArray[np.int64] | None:
        """Return the passages that each entity is in, as a question sees them; None: as the index counts."""
        return None if self.frequency is None else self.frequency[self.of[query]]

    def _by_question(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows[0] if len(rows) == 1 else rows[self.of]


class Views:
    """Makes the views of searches over one index; its entities' passages are read when they are first needed."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @cached_property
    def mentions(self) -> Incidence:
        """The entities of each passage, as nodes of the graph."""
        assert self._index.graph is not None
        return Incidence.from_graph(self._index.graph, self._index.num_passages)

    def read(self, allow: Any, batch: int, scope: AllowScope) -> View | None:
        """Return the view of ``allow=``, or None where everything may be found.

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
        is_alone = scope == "isolated" and graph is not None
        return View(of, passages, self._frequency(passages) if is_alone else None, graph.num_nodes if graph else 0)

    def _frequency(self, passages: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many of each group's passages each entity is in, (G, E), from those passages' rows alone."""
        graph, first = self._index.graph, self._index.num_passages
        assert graph is not None
        rows, columns = self.mentions, graph.num_nodes
        seen = (entries_of(rows.indptr, rows.indices, np.flatnonzero(row))[0] for row in passages)
        counted = [np.bincount(nodes, minlength=columns)[first:] for nodes in seen]
        return np.array(counted, np.int64).reshape(len(passages), columns - first)

    def _without_where(self, given: Any) -> Any:
        """Return masks in the place of filters by metadata, one for all or one for a question."""
        if isinstance(given, Where):
            return self._index.mask(given)
        if isinstance(given, Sequence) and not isinstance(given, str):
            return [self._index.mask(one) if isinstance(one, Where) else one for one in given]
        return given

    def _rows(self, given: Any, name: str) -> Any:
        """Return rows in place of passages' ids; masks and rows as they are."""
        if isinstance(given, str):
            raise InputError(f"{name} is the text {given!r}; give a list of passages: [{given!r}]")
        several = isinstance(given, Sequence | np.ndarray) and len(given) > 0
        return self._index.rows_of(given) if several and all(isinstance(one, str) for one in given) else given


def only(hits: Hits, allow: NDArray[np.bool_] | None) -> Hits:
    """Return the hits that are allowed, in their order: ``allow`` is (P,) or (B, P), None allows all."""
    if allow is None:
        return hits
    held = np.arange(hits.shape[1]) < hits.counts[:, None]
    rows = np.broadcast_to(allow, (len(hits), allow.shape[-1]))
    held &= np.take_along_axis(rows, np.where(held, hits.ids, 0), axis=1)
    return Hits(np.where(held, hits.ids, PAD_ID), hits.scores)
