"""A recipe's core on a device: one recording for each width of seeds and number of hits."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...ops.capture import Captured, capture
from ...types import Hits, Seeds


class Core(Protocol):
    """The computation of a search that may find everything."""

    def __call__(self, vectors: Any, seeds: Seeds, words: Hits | None, *, k: int) -> dict[str, Hits]: ...


class RecordedCores:
    """Recordings of a core, made when they are asked for.

    Parameters
    ----------
    core : callable
    dim : int
        Of the questions' vectors.
    words : int or None
        Length of the lexical list; None where there is none.
    """

    def __init__(self, core: Core, dim: int, words: int | None) -> None:
        self._core, self._dim, self._words = core, dim, words
        self._captured: dict[tuple[int, int], Captured] = {}

    def __call__(self, vectors: Any, seeds: Seeds, words: Hits | None, *, k: int) -> dict[str, Hits]:
        """Return what the core returns: on a GPU one upload, one graph, one download."""
        parts = () if words is None else (words.ids, words.scores, words.counts)
        lists: dict[str, Hits] = self.of(seeds.nodes.shape[1], k)(vectors, seeds.nodes, seeds.weights, *parts)
        return lists

    def of(self, width: int, k: int) -> Captured:
        """Return the core for seeds of a width and so many hits."""
        if (width, k) not in self._captured:

            def core(vectors: Any, nodes: Any, weights: Any, *words: Any) -> dict[str, Hits]:
                return self._core(vectors, Seeds(nodes, weights), Hits.unchecked(*words) if words else None, k=k)

            shapes: list[tuple[tuple[int, ...], Any]] = [((self._dim,), np.float32)]
            shapes += [((width,), np.int64), ((width,), np.float64)]
            if self._words is not None:
                shapes += [((self._words,), np.int64), ((self._words,), np.float32), ((), np.int64)]
            self._captured[width, k] = capture(core, shapes)
        return self._captured[width, k]
