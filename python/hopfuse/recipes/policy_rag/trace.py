"""Traces of PolicyRAG, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...index import Index
from ...ops.ppr import ppr
from ...ops.projection import project
from ...types import Hits, Seeds
from .._parts.facts import named_node, named_passage
from .._parts.paths import Step, Transitions, seed_shares
from .config import Policy
from .core import Start
from .graph import PolicyGraph
from .path_evidence import PathEvidence
from .rerank import RerankedHits


class PolicyOutcome(NamedTuple):
    """The results of a batch of questions that see the same passages."""

    texts: Sequence[str]
    graph: PolicyGraph
    dense: Hits | None
    start: Start
    seeded: NDArray[np.int64]  # questions that have seeds
    starts: Seeds  # their restarts
    eta: NDArray[np.float64]  # (3,), or theirs (S, 3)
    ranked: RerankedHits
    hits: Hits


def trace_questions(index: Index, policy: Policy, outcome: PolicyOutcome, threads: int | None) -> list[dict[str, Any]]:
    """Return one trace per question."""
    walks = _walks(policy, outcome, threads)
    passages = [[passage for passage, _ in outcome.hits.row(b)] for b in range(len(walks))]
    paths = [{} if walk is None else walk.paths(passages[b]) for b, walk in enumerate(walks)]
    every = (path for row in paths for some in row.values() for path in some)
    evidence = PathEvidence(index, outcome.graph, policy.families, every)
    traces = []
    for b, walk in enumerate(walks):
        hits = [{**named_passage(index, passage), "score": score} for passage, score in outcome.hits.row(b)]
        if walk is not None:
            shown = {p: [evidence.steps(path) for path in some] for p, some in paths[b].items()}
            attributed = _attributed(index, walk, passages[b])
            hits = _with_reasons(hits, policy.term_weights, outcome.ranked, b, attributed, shown)
        traces.append(_trace(index, outcome, b, walk, hits))
    return traces


class _Walk:
    """One question's walk, seed by seed."""

    def __init__(
        self,
        policy: Policy,
        graph: PolicyGraph,
        transitions: Transitions,
        eta: tuple[float, ...],
        nodes: NDArray[np.int64],
        weights: NDArray[np.float64],
        threads: int | None,
    ) -> None:
        held = (nodes >= 0) & (weights > 0)
        self.nodes, self.mass = nodes[held], weights[held] / weights[held].sum()
        self._rules, self._graph, self._transitions = policy.walk, graph, transitions
        self._eta, self._threads = eta, threads

    def attributions(self, passages: Sequence[int]) -> NDArray[np.float64]:
        """Return the contribution of each seed to each passage's projected score, (seeds, passages)."""
        rules, graph = self._rules, self._graph
        each = ppr(
            graph.graph,
            Seeds(self.nodes[:, None]),
            damping=rules.damping,
            tol=rules.tol,
            edge_type_weights=self._eta,
            edge_type_norm=cast(Any, rules.edge_type_norm),
            threads=self._threads,
        ).scores
        shares = seed_shares(each, self.mass, self._transitions.kept, rules.damping)
        projected = project(each, graph.incidence, scale=graph.scale, threads=self._threads)
        return np.asarray(shares[:, None] * projected[:, list(passages)].astype(np.float64), np.float64)

    def paths(self, passages: Sequence[int]) -> dict[int, list[list[Step]]]:
        """Return the strongest paths to each of the passages, from a few seeds."""
        incidence = self._graph.incidence
        rows = {p: incidence.indices[incidence.indptr[p] : incidence.indptr[p + 1]].astype(np.int64) for p in passages}
        return self._transitions.paths(dict(zip(self.nodes.tolist(), self.mass.tolist(), strict=True)), rows)


def _walks(policy: Policy, outcome: PolicyOutcome, threads: int | None) -> list[_Walk | None]:
    """Return the walk of each question, or None if it has no seed or reaches no passage."""
    rules, transitions = policy.walk, dict[tuple[float, ...], Transitions]()
    walks: list[_Walk | None] = [None] * len(outcome.texts)
    for row, b in enumerate(outcome.seeded.tolist()):
        if outcome.ranked.hits.counts[b] == 0:
            continue
        eta = tuple((outcome.eta if outcome.eta.ndim == 1 else outcome.eta[row]).tolist())
        if eta not in transitions:
            transitions[eta] = Transitions(outcome.graph.graph, eta, rules.edge_type_norm, rules.damping)
        starts = outcome.starts.nodes[row], outcome.starts.weights[row]
        walks[b] = _Walk(policy, outcome.graph, transitions[eta], eta, *starts, threads)
    return walks


def _trace(
    index: Index, outcome: PolicyOutcome, b: int, walk: _Walk | None, hits: list[dict[str, Any]]
) -> dict[str, Any]:
    names, seeds = index.entity_names, outcome.start.seeds[b]
    candidates = sorted(outcome.start.candidates[b], key=lambda one: (-seeds.get(one.entity, 0.0), one.entity))
    starts = [] if walk is None else list(zip(walk.nodes.tolist(), walk.mass.tolist(), strict=True))
    return {
        "query": outcome.texts[b],
        "ranked_by": "policy" if walk is not None else "vectors",
        "seeds": [
            {"name": names[one.entity], **one._asdict(), "share": seeds.get(one.entity, 0.0)} for one in candidates
        ],
        "facts": [
            {**one._asdict(), "head": names[one.head], "tail": names[one.tail]} for one in outcome.start.facts[b]
        ],
        "passage_seeds": [
            {**named_node(index, node), "mass": mass} for node, mass in starts if node < index.num_passages
        ],
        "hits": hits,
    }


def _attributed(index: Index, walk: _Walk, passages: Sequence[int]) -> list[list[dict[str, Any]]]:
    """Return, for each passage, the seeds that contribute to its score, and their contributions."""
    names = [named_node(index, node) for node in walk.nodes.tolist()]
    return [
        [{**name, "score": share} for name, share in zip(names, shares, strict=True) if share > 0]
        for shares in walk.attributions(passages).T.tolist()
    ]


def _with_reasons(
    hits: Sequence[dict[str, Any]],
    weights: Mapping[str, float],
    ranked: RerankedHits,
    b: int,
    attributed: Sequence[list[dict[str, Any]]],
    paths: Mapping[int, list[list[dict[str, Any]]]],
) -> list[dict[str, Any]]:
    """Return the hits with the terms of their scores, the contributions of seeds, and the paths to them."""
    place = {passage: at for at, (passage, _) in enumerate(ranked.pool.row(b))}
    largest, traced = float(ranked.pool.scores[b, 0]), []
    for hit, shares in zip(hits, attributed, strict=True):
        at = place[hit["passage"]]
        projected = float(ranked.pool.scores[b, at])
        added = {name: weights[name] * float(phi[b, at]) for name, phi in ranked.terms.items() if weights[name]}
        terms = {"projected": projected / largest, **added}
        reached = paths.get(hit["passage"], [])
        traced.append({**hit, "projected": projected, "terms": terms, "attribution": shares, "paths": reached})
    return traced
