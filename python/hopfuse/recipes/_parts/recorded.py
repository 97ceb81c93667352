"""Recordings of a recipe's core on a device: one for each width of seeds and number of hits."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...ops.capture import Captured, capture
from ...types import Hits, Seeds


class Core(Protocol):
    """The computation of a search without a filter."""

    def __call__(self, vectors: Any, seeds: Seeds, *given: Hits | None, k: int) -> dict[str, Hits]: ...


class RecordedCores:
    """Recordings of a core, made on demand.

    Parameters
    ----------
    core : callable
    dim : int
        Dimension of the questions' vectors.
    *lengths : int or None
        Lengths of the lists that the core takes after the seeds; None for a list that is absent.
    """

    def __init__(self, core: Core, dim: int, *lengths: int | None) -> None:
        self._core, self._dim, self._lengths = core, dim, lengths
        self._captured: dict[tuple[int, int], Captured] = {}

    def __call__(self, vectors: Any, seeds: Seeds, *given: Hits | None, k: int) -> dict[str, Hits]:
        """Return the core's result: on a GPU one upload, one graph, one download."""
        parts = [part for hits in given if hits is not None for part in (hits.ids, hits.scores, hits.counts)]
        lists: dict[str, Hits] = self.of(seeds.nodes.shape[1], k)(vectors, seeds.nodes, seeds.weights, *parts)
        return lists

    def of(self, width: int, k: int) -> Captured:
        """Return the captured core for a width of seeds and a number of hits."""
        if (width, k) not in self._captured:

            def core(vectors: Any, nodes: Any, weights: Any, *parts: Any) -> dict[str, Hits]:
                arrays = iter(parts)
                given = [
                    None if length is None else Hits.unchecked(next(arrays), next(arrays), next(arrays))
                    for length in self._lengths
                ]
                return self._core(vectors, Seeds(nodes, weights), *given, k=k)

            shapes: list[tuple[tuple[int, ...], Any]] = [((self._dim,), np.float32)]
            shapes += [((width,), np.int64), ((width,), np.float64)]
            for length in self._lengths:
                if length is not None:
                    shapes += [((length,), np.int64), ((length,), np.float32), ((), np.int64)]
            self._captured[width, k] = capture(core, shapes)
        return self._captured[width, k]
