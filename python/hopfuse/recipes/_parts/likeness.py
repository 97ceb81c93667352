"""Similarity of entities that share a name to a question, by the passages that they are in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import exp

import numpy as np
from numpy.typing import NDArray

from ...index import Index
from ...types import Corpus, Incidence

SPREAD = 0.05
"""A cosine that is lower by this much counts 1 / e as much."""
FLOOR = 0.01
"""The smallest factor, also that of an entity without passages."""


class EntityPassages:
    """The passages of each entity and their vectors, laid out when they are first needed."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @cached_property
    def corpus(self) -> Corpus | None:
        """The vectors of the passages, compared by cosine; None without vectors or a graph."""
        corpus = self._index.corpus
        return None if corpus is None or self._index.graph is None else corpus.with_metric("cosine")

    @cached_property
    def _passages(self) -> Incidence:
        graph = self._index.graph
        assert graph is not None
        return Incidence.from_graph(graph, self._index.num_passages).transposed()

    def rows(self, entity: int) -> NDArray[np.int32]:
        """Return the passages of an entity."""
        rows, node = self._passages, self._index.num_passages + entity
        return rows.indices[rows.indptr[node] : rows.indptr[node + 1]]


def likeness(cosines: Mapping[int, float]) -> dict[int, float]:
    """Return a factor for each entity of one name: max(exp((cosine - largest) / ``SPREAD``), ``FLOOR``).

    ``cosines``: of each entity, that of its best passage and the question; -inf for an entity without passages. If no
    entity has passages, all factors are 1.
    """
    best = max(cosines.values())
    if best == -np.inf:
        return dict.fromkeys(cosines, 1.0)
    return {entity: max(FLOOR, exp((cosine - best) / SPREAD)) for entity, cosine in cosines.items()}
