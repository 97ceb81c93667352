"""Which passages a question may see, and what of the graph it then sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ops._checks import mask_or_ids
from ..types import Graph, Incidence
from ..types.arrays import to_numpy
from ._ragged import entries_of


@dataclass(frozen=True, eq=False)
class View:
    """What the questions of a batch see: question b as group ``of[b]``, one for each distinct set of passages."""

    of: NDArray[np.int64]  # (B,)
    passages: NDArray[np.bool_]  # (G, P)
    frequency: NDArray[np.int64] | None  # (G, E), counted in those passages; None where all share the graph

    @property
    def allow(self) -> NDArray[np.bool_]:
        """The passages, as operations take them: (P,) where all questions see the same, else (B, P)."""
        return self._rows(self.passages)

    @property
    def nodes(self) -> NDArray[np.bool_] | None:
        """Those passages and the entities next to them, likewise; None where all share the graph."""
        if self.frequency is None:
            return None
        return self._rows(np.concatenate([self.passages, self.frequency > 0], axis=1))

    @property
    def seed_weights(self) -> NDArray[np.float64] | None:
        """1 / frequency, and 0 for an entity that is not seen: (G, E); None where all share the graph."""
        if self.frequency is None:
            return None
        return np.where(self.frequency > 0, 1.0 / np.maximum(self.frequency, 1), 0.0)

    def _rows(self, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return masks[0] if len(masks) == 1 else masks[self.of]


class Views:
    """Makes the views of searches over one graph; who is next to whom is looked at when it is first needed."""

    def __init__(self, graph: Graph, num_passages: int) -> None:
        self._graph, self._num_passages = graph, num_passages
        self._mentions: Incidence | None = None

    def read(self, allowed: Any, batch: int, shared_graph: bool) -> View | None:
        """The view of an ``allowed=``, or None where everything is."""
        if not isinstance(shared_graph, bool):
            raise InputError(f"shared_graph is {shared_graph!r}; it must be True or False")
        if allowed is None:
            return None
        masks = _read_masks(allowed, batch, self._num_passages)
        groups: dict[bytes, int] = {}
        numbers = [groups.setdefault(row.tobytes(), len(groups)) for row in np.packbits(masks, axis=1)]
        passages = masks[[numbers.index(group) for group in range(len(groups))]]
        of = np.array(numbers * batch if len(masks) == 1 else numbers, np.int64)
        return View(of, passages, None if shared_graph else self._frequency(passages))

    def _frequency(self, passages: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of each group's passages each entity is in: (G, E). What is read is those passages' rows alone."""
        if self._mentions is None:
            self._mentions = Incidence.from_graph(self._graph, self._num_passages)
        rows, columns = self._mentions, self._graph.num_nodes
        seen = (entries_of(rows.indptr, rows.indices, np.flatnonzero(row))[0] for row in passages)
        counted = [np.bincount(nodes, minlength=columns)[self._num_passages :] for nodes in seen]
        return np.array(counted, np.int64).reshape(len(passages), columns - self._num_passages)


def _read_masks(allowed: Any, batch: int, num_passages: int) -> NDArray[np.bool_]:
    """(1, P) for all questions, or (B, P)."""
    several = isinstance(allowed, Sequence) and not isinstance(allowed, str) and len(allowed) > 0
    if several and not isinstance(allowed[0], bool | int | np.integer | np.bool_ | str):
        rows = [_read_mask(row, num_passages, f"allowed[{b}]") for b, row in enumerate(allowed)]
        if any(row.ndim != 1 for row in rows):
            raise InputError("allowed has rows of rows; give each query one list of passages, or one mask")
        masks = np.stack(rows)
    else:
        masks = _read_mask(allowed, num_passages, "allowed")
        if masks.ndim == 1:
            return masks[None]
    if masks.ndim != 2 or len(masks) != batch:
        raise InputError(f"allowed has {len(masks)} rows for {batch} queries; give one row per query, or one for all")
    return masks


def _read_mask(value: Any, num_passages: int, name: str) -> NDArray[np.bool_]:
    mask, ids = mask_or_ids(to_numpy(value, name), num_passages, name)
    if mask is None:
        mask = np.zeros(num_passages, np.bool_)
        mask[ids] = True
    return mask
