"""Recipes whose core is recorded on a device: one recording for each width of seeds and number of hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..._validation import check_whole
from ...errors import InputError
from ...index import Index
from ...ops.capture import Captured, capture
from ...types import Hits, Seeds
from .base import BaseRecipe, Result
from .config import lacking
from .seeding import MIN_SEED_WIDTH, seed_width


class Core(Protocol):
    """The computation of a search without a filter."""

    def __call__(self, vectors: Any, seeds: Seeds, *given: Any, k: int) -> dict[str, Hits]: ...


class RowOf(NamedTuple):
    """An array that a core takes, with a row for each question: ``size`` numbers, or one for each seed if None."""

    dtype: Any
    size: int | None = None


class RecordedCores:
    """Recordings of a core, made on demand.

    Parameters
    ----------
    core : callable
    dim : int
        Dimension of the questions' vectors.
    *inputs : int, RowOf or None
        What the core takes after the seeds: a list by its length, an array, or None for what is absent.
    """

    def __init__(self, core: Core, dim: int, *inputs: int | RowOf | None) -> None:
        self._core, self._dim, self._inputs = core, dim, inputs
        self._captured: dict[tuple[int, int], Captured] = {}

    def __call__(self, vectors: Any, seeds: Seeds, *given: Any, k: int) -> dict[str, Hits]:
        """Return the core's result: on a GPU one upload, one graph, one download."""
        parts: list[Any] = []
        for one in given:
            parts += (one.ids, one.scores, one.counts) if isinstance(one, Hits) else () if one is None else (one,)
        lists: dict[str, Hits] = self.of(seeds.nodes.shape[1], k)(vectors, seeds.nodes, seeds.weights, *parts)
        return lists

    def of(self, width: int, k: int) -> Captured:
        """Return the captured core for a width of seeds and a number of hits."""
        if (width, k) not in self._captured:
            own, inputs = self._core, self._inputs  # not self, which would be in a circle with its recordings

            def core(vectors: Any, nodes: Any, weights: Any, *parts: Any) -> dict[str, Hits]:
                arrays = iter(parts)
                given = [None if one is None else _next_input(one, arrays) for one in inputs]
                return own(vectors, Seeds(nodes, weights), *given, k=k)

            shapes: list[tuple[tuple[int, ...], Any]] = [((self._dim,), np.float32)]
            shapes += [((width,), np.int64), ((width,), np.float64)]
            for one in inputs:
                if isinstance(one, RowOf):
                    shapes.append(((width if one.size is None else one.size,), one.dtype))
                elif one is not None:
                    shapes += [((one,), np.int64), ((one,), np.float32), ((), np.int64)]
            self._captured[width, k] = capture(core, shapes)
        return self._captured[width, k]


def _next_input(one: int | RowOf, arrays: Iterator[Any]) -> Any:
    return next(arrays) if isinstance(one, RowOf) else Hits.unchecked(next(arrays), next(arrays), next(arrays))


class RecordedRecipe(BaseRecipe[Result]):
    """Base class of the recipes over vectors and a graph, which record their searches on a GPU."""

    _recorded: RecordedCores

    @classmethod
    def missing(cls, index: Index, config: Any = None) -> InputError | None:
        """Return the error that says what the index lacks for this recipe, or None."""
        if index.corpus is not None and index.graph is not None:
            return None
        return lacking(cls.__name__, "corpus", "graph")

    def warmup(
        self, k: int = 10, *, batch_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32), max_seeds: int = MIN_SEED_WIDTH
    ) -> None:
        """Record searches of these batch sizes ahead of the first one. On the CPU this does nothing.

        Nor does it for searches that are not recorded; see the notes of :meth:`search`.

        Parameters
        ----------
        k : int
            As in :meth:`search`.
        batch_sizes : sequence of int
        max_seeds : int
            Entities that a question names, rounded up to a power of two; each width has its own recordings.
        """
        core = self._recorded.of(seed_width(check_whole(max_seeds, "max_seeds")), self._k(k))
        core.warmup(batch_sizes if self._is_recorded else [])

    @property
    def _is_recorded(self) -> bool:
        """Whether searches with this config are recorded."""
        return True
