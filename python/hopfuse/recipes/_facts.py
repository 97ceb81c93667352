"""From seeds to the facts around them, and from scored facts to entities; all queries together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Hits, Triples
from ..types.hits import PAD_ID, PAD_SCORE
from ._ragged import entries_of

BIAS = 1e-6
"""What a graph score has over an equal one of the vectors. Both are at most 1, where this is 8 steps of float32 or
more."""


class Facts(NamedTuple):
    """Facts by query, ascending, and the entity that each of them leads to."""

    query: NDArray[np.int64]
    fact: NDArray[np.int64]  # row of the triples
    entity: NDArray[np.int64]  # its other end

    def indptr(self, batch: int) -> NDArray[np.int64]:
        """Query b has the facts indptr[b] .. indptr[b + 1] - 1."""
        return np.searchsorted(self.query, np.arange(batch + 1)).astype(np.int64)


def facts_around(triples: Triples, seeds: Hits, hops: int) -> Facts:
    """Every fact with a seed at one end, in both directions; then those of the entities reached, and so on."""
    n = len(triples.entities)
    held = np.arange(seeds.ids.shape[1]) < seeds.counts[:, None]
    frontier = np.unique(
        np.repeat(np.arange(len(seeds)), seeds.counts) * n + seeds.ids[held]
    )  # query and entity in one
    graph = (triples.rows, triples.indptr, triples.incident)
    seen, found = frontier, [step(*graph, frontier // n, frontier % n)]
    for _ in range(hops - 1):
        frontier = np.setdiff1d(found[-1].query * n + found[-1].entity, seen)
        seen = np.union1d(seen, frontier)
        found.append(step(*graph, frontier // n, frontier % n))
    merged = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    order = np.argsort(merged[0], kind="stable")
    return Facts(*(part[order] for part in merged))


def step(
    rows: NDArray[np.int32],
    indptr: NDArray[np.int64],
    incident: NDArray[np.int32],
    query: NDArray[np.int64],
    entity: NDArray[np.int64],
) -> Facts:
    """The facts that have these entities at an end, for each of their queries."""
    fact, count = entries_of(indptr, incident, entity)
    fact = fact.astype(np.int64)
    ends = rows[fact][:, [0, 2]].astype(np.int64)
    return Facts(np.repeat(query, count), fact, ends.sum(axis=1) - np.repeat(entity, count))


def best_entities(facts: Facts, scores: NDArray[np.float32], batch: int, k: int) -> tuple[Hits, NDArray[np.int64]]:
    """The k best entities of each query by their best fact, and that fact for each hit, (B, k).

    A fact that scores 0 leads nowhere; of equal facts the first counts.
    """
    leads = np.flatnonzero(scores > 0)
    place = facts.query[leads] * (1 + int(facts.entity.max(initial=0))) + facts.entity[leads]
    order = np.argsort(_worth(scores[leads], facts.fact[leads]))
    order = order[np.argsort(place[order], kind="stable")]  # by query, entity, score and fact
    first = np.ones(order.size, bool)
    first[1:] = place[order[1:]] != place[order[:-1]]
    best = leads[order[first]]
    best = best[np.argsort(-scores[best], kind="stable")]
    best = best[np.argsort(facts.query[best], kind="stable")]  # by query, score and entity
    query = facts.query[best]
    rank = np.arange(best.size) - np.searchsorted(query, query)
    best, query, rank = best[rank < k], query[rank < k], rank[rank < k]
    ids, found = np.full((batch, k), PAD_ID, np.int64), np.full((batch, k), PAD_ID, np.int64)
    values = np.full((batch, k), PAD_SCORE, np.float32)
    ids[query, rank], found[query, rank], values[query, rank] = facts.entity[best], facts.fact[best], scores[best]
    return Hits._trusted(ids, values, np.bincount(query, minlength=batch)), found


def _worth(scores: NDArray[np.float32], fact: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Ascends as scores above 0 fall, and with the fact where they are equal: one key sorts faster than two."""
    falling = np.uint32(0xFFFFFFFF) - scores.view(np.uint32)
    return (falling.astype(np.uint64) << np.uint64(32)) | fact.astype(np.uint64)
