"""Trace a GuidedWalk search, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...index import Index
from ...ops.ppr import ppr
from ...ops.seeding import boost_weights
from ...ops.similarity import similarity_weights
from ...types import Corpus, Graph, Hits, Incidence, Seeds
from .._parts.direct import KEPT_AMONG, Rarest, WeightedRanking, direct_trace
from .._parts.facts import named_node, named_passage
from .._parts.filters import View
from .._parts.paths import Step, Transitions, path_records, seed_shares
from .._parts.seeding import Seed, seed_trace
from .config import GuidedWalkConfig
from .shares import SecondShares, add_second_seeds


class GuidedOutcome(NamedTuple):
    """A search of a batch: its inputs, and the core's results."""

    vectors: NDArray[Any]  # that steer the walk
    mentions: Incidence  # the entities of each passage, as nodes
    shares: SecondShares  # their weights as second seeds
    seeds: Sequence[Sequence[Seed]]  # that each question names
    named: Seeds  # the same, as nodes
    other_words: Sequence[str] | None  # each question without the names that it mentions; None without texts
    boosted: Hits | None  # the passages that have them; None if words raise no weights
    first: Hits
    lists: Mapping[str, Hits]
    ranking: WeightedRanking
    rarest: Sequence[Rarest | None]
    view: View | None

    @property
    def hits(self) -> Hits:
        return self.ranking.hits


def trace_queries(
    index: Index, config: GuidedWalkConfig, outcome: GuidedOutcome, threads: int | None
) -> list[dict[str, Any]]:
    """Return a trace per question: seeds, lists, and for each hit its ranks, weight, seeds and paths."""
    starts, weights = _starts(config, outcome), _weights(index, config, outcome, threads)
    assert index.graph is not None
    eta = _type_weights(index.graph, config)
    transitions = Transitions(index.graph, eta, "joint", config.damping)
    traces = []
    for b in range(len(outcome.hits)):
        walk = None
        if outcome.lists["guided"].counts[b]:
            walk = _Walk(index.graph, config, transitions.reweighted(weights[b]), starts[b], weights[b], threads)
        traces.append(_trace(index, config, outcome, b, starts[b], weights[b], walk))
    return traces


class _Start(NamedTuple):
    """Shares of the restart by node, for the question's own seeds and for second seeds; all shares sum to 1."""

    named: dict[int, float]
    second: dict[int, float]


class _Walk:
    """One question's guided walk, seed by seed."""

    def __init__(
        self,
        graph: Graph,
        config: GuidedWalkConfig,
        transitions: Transitions,
        start: _Start,
        weights: NDArray[np.float64],
        threads: int | None,
    ) -> None:
        self._transitions = transitions
        self.nodes = np.array(sorted({**start.named, **start.second}), np.int64)
        self.mass = np.array([start.named.get(n, 0.0) + start.second.get(n, 0.0) for n in self.nodes.tolist()])
        each = ppr(
            graph,
            Seeds(self.nodes[:, None]),
            damping=config.damping,
            edge_type_weights=config.edge_weights,
            node_weights=np.broadcast_to(weights, (self.nodes.size, weights.size)),
            threads=threads,
        ).scores
        self._given = seed_shares(each, self.mass, transitions.kept, config.damping)[:, None] * each

    def attributions(self, passage: int) -> list[tuple[int, float]]:
        """Return the seeds that contribute to a passage's score in the walk, and their contributions, largest first."""
        given = self._given[:, passage]
        order = np.lexsort((self.nodes, -given))
        return [(int(self.nodes[at]), float(given[at])) for at in order[given[order] > 0]]

    def paths(self, passages: Sequence[int]) -> dict[int, list[list[Step]]]:
        """Return the strongest paths to each of the passages, from a few seeds."""
        ends = {passage: np.array([passage], np.int64) for passage in passages}
        return self._transitions.paths(dict(zip(self.nodes.tolist(), self.mass.tolist(), strict=True)), ends)


def _starts(config: GuidedWalkConfig, outcome: GuidedOutcome) -> list[_Start]:
    """Return the parts of each question's restart."""
    none = Seeds(np.full((len(outcome.named), 0), -1), np.zeros((len(outcome.named), 0)))
    second = add_second_seeds(none, outcome.first, outcome.shares, config.second_mass, backend="cpu")
    starts = []
    for own, more in zip(_rows(outcome.named), _rows(second), strict=True):
        mass = config.second_mass if own else 1.0
        kept = 1.0 - mass if own and more else 1.0
        total = sum(own.values())
        named = {node: kept * weight / total for node, weight in own.items() if kept > 0}
        starts.append(_Start(named, {node: mass * share for node, share in more.items() if mass > 0}))
    return starts


def _rows(seeds: Seeds) -> list[dict[int, float]]:
    rows = zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    return [{node: weight for node, weight in zip(*row, strict=True) if node >= 0 and weight > 0} for row in rows]


def _weights(
    index: Index, config: GuidedWalkConfig, outcome: GuidedOutcome, threads: int | None
) -> NDArray[np.float64]:
    """Return each question's weight of every node, (B, N)."""
    assert index.corpus is not None
    assert index.graph is not None
    weights = np.ones((len(outcome.hits), index.graph.num_nodes))
    found = _passage_weights(outcome.vectors, outcome.boosted, index.corpus, config, threads=threads)
    weights[:, : index.num_passages] = found
    return weights


def _type_weights(graph: Graph, config: GuidedWalkConfig) -> list[float]:
    given = config.edge_weights or {}
    return [given.get(name, 1.0) for name in graph.edge_type_names]


def _trace(
    index: Index,
    config: GuidedWalkConfig,
    outcome: GuidedOutcome,
    b: int,
    start: _Start,
    weights: NDArray[np.float64],
    walk: _Walk | None,
) -> dict[str, Any]:
    view, seeds = outcome.view, outcome.seeds[b]
    legs = {leg: _leg(index, found, b) for leg, found in outcome.lists.items()}
    for passage, row in legs["guided"].items():
        row["weight"] = float(weights[passage])
    kept = KEPT_AMONG if outcome.ranking.moved is not None and outcome.ranking.moved[b] else None
    ranked = enumerate(outcome.hits.row(b), 1)
    hits = [_hit(index, outcome, b, passage, score, legs, rank == kept) for rank, (passage, score) in ranked]
    if walk is not None:
        paths = path_records(index, walk.paths([hit["passage"] for hit in hits]), weights)
        for hit in hits:
            hit["weight"] = float(weights[hit["passage"]])
            hit["attribution"] = [_given(index, start, *one) for one in walk.attributions(hit["passage"])]
            hit["paths"] = paths.get(hit["passage"], [])
    words: dict[str, Any] = {}
    if outcome.boosted is not None:
        text = "" if outcome.other_words is None else outcome.other_words[b]
        words["other_words"] = text if text.strip() else None
        boosts = _boosts_of(outcome.boosted, b, config.boost)
        for hit in hits:
            hit["boost"] = boosts.get(hit["passage"], 1.0)
    return {
        "query": b,
        "ranked_by": "guided walk" if walk is not None else "dense and words" if legs.get("lexical") else "dense",
        "seeds": [seed_trace(index, seed) for seed in seeds],
        "left_out": [],
        "allowed": None if view is None else view.num_allowed(b),
        "second_seeds": _second(index, outcome, b, start),
        **_direct(index, config, outcome, b),
        **words,
        **{leg: list(rows.values()) for leg, rows in legs.items()},
        "hits": hits,
    }


def _second(index: Index, outcome: GuidedOutcome, b: int, start: _Start) -> list[dict[str, Any]]:
    """Return the second seeds with their shares of the restart, largest first, and the passages they come from."""
    indptr, indices, first = outcome.mentions.indptr, outcome.mentions.indices, index.num_passages
    of: dict[int, list[int]] = {}
    for passage, _ in outcome.first.row(b):
        for node in indices[indptr[passage] : indptr[passage + 1]].tolist():
            of.setdefault(node, []).append(passage)
    frequency = index.passage_frequency
    assert frequency is not None
    return [
        {
            "entity": node - first,
            "name": index.entity_names[node - first],
            "passage_frequency": int(frequency[node - first]),
            "share": share,
            "passages": [named_passage(index, passage) for passage in of[node]],
        }
        for node, share in sorted(start.second.items(), key=lambda one: (-one[1], one[0]))
    ]


def _leg(index: Index, found: Hits, b: int) -> dict[int, dict[str, Any]]:
    return {
        passage: {**named_passage(index, passage), "rank": rank, "score": score}
        for rank, (passage, score) in enumerate(found.row(b), 1)
    }


def _hit(
    index: Index,
    outcome: GuidedOutcome,
    b: int,
    passage: int,
    score: float,
    legs: Mapping[str, Mapping[int, Mapping[str, Any]]],
    is_kept: bool,
) -> dict[str, Any]:
    terms = outcome.ranking.terms
    ranks = {leg: legs[leg][passage]["rank"] for leg in terms if passage in legs.get(leg, ())}
    contributions = {leg: float(terms[leg][b, rank - 1]) for leg, rank in ranks.items()}
    kept = {"kept": True} if is_kept else {}
    return {**named_passage(index, passage), "score": score, "ranks": ranks, "contributions": contributions, **kept}


def _direct(index: Index, config: GuidedWalkConfig, outcome: GuidedOutcome, b: int) -> dict[str, Any]:
    """Return how far the question is left to direct retrieval, and why."""
    if not config.by_question:
        return {}
    return {"direct": direct_trace(index, outcome.rarest[b], float(outcome.ranking.direct[b]))}


def _given(index: Index, start: _Start, node: int, score: float) -> dict[str, Any]:
    """Return a seed's contribution to a passage's score, split by its shares as a named and as a second seed."""
    named, second = start.named.get(node, 0.0), start.second.get(node, 0.0)
    parts = {"named": score * named / (named + second), "second": score * second / (named + second)}
    return {**named_node(index, node), **{part: value for part, value in parts.items() if value > 0}}


def _passage_weights(
    vectors: Any,
    boosted: Hits | None,
    corpus: Corpus,
    config: GuidedWalkConfig,
    *,
    threads: int | None,
) -> Any:
    """Return each passage's weight, (B, P), as the core computes it in two calls of its own."""
    tau = config.decay(has_words=boosted is not None)
    weights = similarity_weights(vectors, corpus, tau=tau, floor=config.floor, threads=threads)
    return weights if boosted is None else boost_weights(weights, boosted, config.boost, backend="cpu")


def _boosts_of(boosted: Hits, b: int, boost: float) -> dict[int, float]:
    """Return what one question's weights are multiplied by, by passage; 1 for a passage that is not there."""
    raised = [(passage, score) for passage, score in boosted.row(b) if score > 0]
    most = max((score for _, score in raised), default=1.0)
    return {passage: 1.0 + boost * score / most for passage, score in raised}
