"""TripleHybrid: rank entities by their vectors and by the facts that lead to them.

    question ─► vector ─► dense top-k over entity texts ──────────────────► vector list ───────┐
        │                   └─► seeds ─► their facts, both directions, n hops                 max ─► top k
        │                                           ▼                                          │
        ├─► bigrams or words ─► mean Dice with head, relation, tail                            │
        │                                           └─► the other end ─► graph list, + 1e-6 ───┘
        └─► words ─► a lexical leg (a separate mode) ─► lexical list

All questions of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.distinct import distinct
from ..._arrays.rows import entries_of
from ...ops.dense import check_queries, dense_topk
from ...ops.dice import dice_scores
from ...ops.fusion import fuse
from ...types import Corpus, Facts, Hits, Incidence, LabelSets
from ...types.hits import PAD_ID, PAD_SCORE
from .._parts.facts import QueryFacts, fact_labels, facts_of, num_statements
from .._parts.filters import View
from .._parts.lexical import LexicalLeg, lexical_pool
from .config import TripleHybridConfig

BIAS = 1e-6
"""Added to a graph score, so that it precedes an equal cosine. Scores are at most 1, where this is 8 float32 steps or
more."""


class Knowledge(NamedTuple):
    """The parts of an index that a search reads; those that the mode does not use may be None."""

    facts: Facts | None
    labels: LabelSets | None  # of the entities, then of the relations
    corpus: Corpus | None  # of the entities, by cosine
    lexical: LexicalLeg | None
    num_entities: int


class VisibleEntities(NamedTuple):
    """The entities that each query may list, as a mask for its group ``of[b]``."""

    of: NDArray[np.int64]  # (B,)
    entities: NDArray[np.bool_]  # (G, E)

    @property
    def rows(self) -> NDArray[np.bool_]:
        """The entities as operations take them: (E,) if all queries see the same, else (B, E)."""
        return self.entities[0] if len(self.entities) == 1 else self.entities[self.of]


class TripleRanking(NamedTuple):
    """The ranking, the lists it was made from, the seeds, and the best fact of each hit in the graph list."""

    hits: Hits
    lists: dict[str, Hits]
    seeds: Hits | None = None
    best_facts: NDArray[np.int64] | None = None


def rank(
    config: TripleHybridConfig,
    known: Knowledge,
    queries: Sequence[str] | None,
    vectors: Any,
    k: int,
    *,
    visible: VisibleEntities | None,
    backend: str,
    threads: int | None,
) -> TripleRanking:
    """Rank the entities for a batch of questions."""
    run: dict[str, Any] = {"backend": backend, "threads": threads}
    listed = None if visible is None else visible.rows
    if config.mode == "lexical":
        found = lexical_pool(known.lexical, queries, k, known.num_entities, listed)
        assert found is not None
        return TripleRanking(found, {"lexical": found})
    assert known.corpus is not None
    vectors = check_queries(vectors, known.corpus.dim, needs_length=True, backend=backend)
    if config.mode == "vector":
        nearest = dense_topk(vectors, known.corpus, k, allow=listed, **run)
        return TripleRanking(nearest, {"vector": nearest})

    assert known.facts is not None
    assert known.labels is not None
    assert queries is not None
    depth = min(max(config.seeds, config.vector_k), known.num_entities)
    nearest = dense_topk(vectors, known.corpus, depth, allow=listed, **run)
    seeds = nearest.head(config.seeds)
    if visible is not None:
        seeds = dense_topk(vectors, known.corpus, min(config.seeds, known.num_entities), **run)

    led = facts_around(known.facts, seeds, config.hops)
    if visible is not None:
        led = led.at(visible.entities[visible.of[led.query], led.entity])
    labels, indptr = fact_labels(known.facts, led.fact), led.indptr(len(queries))
    scores = dice_scores(queries, known.labels, labels, indptr=indptr, **run)
    limit = k if config.mode == "graph" else min(config.graph_k, known.num_entities)
    graph, best_facts = best_entities(led, scores, len(queries), limit)
    if config.mode == "graph":
        return TripleRanking(graph, {"graph": graph}, seeds, best_facts)

    lists = {"vector": nearest.head(config.vector_k), "graph": graph}
    both = [lists["vector"], lists["graph"]]
    hits = fuse(both, method="max", bias=(0.0, BIAS), calibration=config.calibration, k=k, **run)
    return TripleRanking(hits, lists, seeds, best_facts)


def visible_to(view: View, mentions: Incidence | None, facts: Facts | None, num_entities: int) -> VisibleEntities:
    """Return the entities that occur in the allowed passages of each group of queries.

    An entity occurs in a passage if the graph joins them, or if the passage states a fact about the entity.
    """
    entities = np.zeros((len(view.passages), num_entities), np.bool_)
    for group, passages in enumerate(view.passages):
        if mentions is not None:
            nodes, _ = entries_of(mentions.indptr, mentions.indices, np.flatnonzero(passages))
            entities[group, nodes - passages.size] = True
        if facts is not None:
            stated = num_statements(facts, passages) > 0
            entities[group, facts.rows[stated][:, [0, 2]]] = True
    return VisibleEntities(view.of, entities)


def facts_around(facts: Facts, seeds: Hits, hops: int) -> QueryFacts:
    """Return all facts with a seed at either end and, for further hops, the facts of the entities reached."""
    n = facts.num_entities
    held = np.arange(seeds.ids.shape[1]) < seeds.counts[:, None]
    # Query and entity are encoded as one number.
    frontier = distinct(np.repeat(np.arange(len(seeds)), seeds.counts) * n + seeds.ids[held])
    seen, found = frontier, list[QueryFacts]()
    for hop in range(hops):
        if hop:
            frontier = np.setdiff1d(found[-1].query * n + found[-1].entity, seen)
            seen = np.union1d(seen, frontier)
        found.append(facts_of(facts, frontier // n, frontier % n))
    merged = QueryFacts(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return merged.at(np.argsort(merged.query, kind="stable"))


def best_entities(led: QueryFacts, scores: NDArray[np.float32], batch: int, k: int) -> tuple[Hits, NDArray[np.int64]]:
    """Return the k best entities of each query by their best fact, and that fact for each hit, (B, k).

    Facts with score 0 are ignored; ties go to the lower fact.
    """
    leads = np.flatnonzero(scores > 0)
    place = led.query[leads] * (1 + int(led.entity.max(initial=0))) + led.entity[leads]
    order = np.argsort(_sort_keys(scores[leads], led.fact[leads]))
    order = order[np.argsort(place[order], kind="stable")]  # by query, entity, score and fact
    first = np.ones(order.size, bool)
    first[1:] = place[order[1:]] != place[order[:-1]]
    best = leads[order[first]]
    best = best[np.argsort(-scores[best], kind="stable")]
    best = best[np.argsort(led.query[best], kind="stable")]  # by query, score and entity
    query = led.query[best]
    rank = np.arange(best.size) - np.searchsorted(query, query)
    best, query, rank = best[rank < k], query[rank < k], rank[rank < k]
    ids, found = np.full((batch, k), PAD_ID, np.int64), np.full((batch, k), PAD_ID, np.int64)
    values = np.full((batch, k), PAD_SCORE, np.float32)
    ids[query, rank], found[query, rank], values[query, rank] = led.entity[best], led.fact[best], scores[best]
    return Hits.unchecked(ids, values, np.bincount(query, minlength=batch)), found


def _sort_keys(scores: NDArray[np.float32], fact: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return keys that sort positive scores in descending order, and equal ones by ascending fact.

    Sorting by one key is faster than by two.
    """
    falling = np.uint32(0xFFFFFFFF) - scores.view(np.uint32)
    return (falling.astype(np.uint64) << np.uint64(32)) | fact.astype(np.uint64)
