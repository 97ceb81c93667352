"""The facts of entities, for many queries together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of
from ...types import Facts


class QueryFacts(NamedTuple):
    """Facts by query, ascending, and the entity at the other end of each."""

    query: NDArray[np.int64]
    fact: NDArray[np.int64]
    entity: NDArray[np.int64]

    def indptr(self, batch: int) -> NDArray[np.int64]:
        """Return where each query's facts are: those of query b at indptr[b] .. indptr[b + 1] - 1."""
        return np.searchsorted(self.query, np.arange(batch + 1)).astype(np.int64)

    def at(self, places: NDArray[Any]) -> QueryFacts:
        """Return those of a mask, or at some places in their order."""
        return QueryFacts(*(part[places] for part in self))


def facts_of(facts: Facts, query: NDArray[np.int64], entity: NDArray[np.int64]) -> QueryFacts:
    """Return the facts that have these entities at an end, for each of their queries."""
    fact, count = entries_of(facts.incident_indptr, facts.incident, entity)
    fact = fact.astype(np.int64)
    ends = facts.rows[fact][:, [0, 2]].astype(np.int64)
    return QueryFacts(np.repeat(query, count), fact, ends.sum(axis=1) - np.repeat(entity, count))


def num_statements(facts: Facts, passages: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of some passages state each fact, (F,); ``passages``: a mask (P,)."""
    if len(facts) == 0:
        return np.zeros(0, np.int64)
    return np.add.reduceat(passages[facts.passages], facts.indptr[:-1], dtype=np.int64)
