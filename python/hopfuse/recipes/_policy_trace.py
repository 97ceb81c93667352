"""What a PolicyRAG search did, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..ops.ppr import ppr
from ..ops.projection import project
from ..types import Seeds
from ._path_evidence import PathEvidence, named_node, named_passage
from ._phrase_seeds import Candidates
from ._policy_rerank import Reranked
from ._strong_paths import Step, Transitions

if TYPE_CHECKING:
    from .policy_rag import PolicyRAG, PolicyRAGResult


def trace_policy(
    recipe: PolicyRAG,
    queries: Sequence[str],
    found: PolicyRAGResult,
    candidates: Sequence[Candidates],
    ranked: Reranked,
    starts: Seeds,
    eta: NDArray[Any],
) -> PolicyRAGResult:
    """The result with its traces; ``starts``: the restarts of the questions that have seeds, in their order."""
    walks = _walks(recipe, found, ranked, starts, eta)
    paths = [
        {} if walk is None else walk.paths([passage for passage, _ in found.hits.row(b)])
        for b, walk in enumerate(walks)
    ]
    evidence = PathEvidence(recipe, (path for row in paths for ways in row.values() for path in ways))
    traces = []
    for b, (query, walk) in enumerate(zip(queries, walks, strict=True)):
        hits = found.hits.row(b)
        plain = [{**named_passage(recipe, passage), "score": score} for passage, score in hits]
        if walk is not None:
            given = walk.attributions([passage for passage, _ in hits])
            shown = {p: [evidence.steps(path) for path in ways] for p, ways in paths[b].items()}
            plain = _hits(recipe, plain, ranked, b, _attributed(recipe, walk, given), shown)
        traces.append(_trace(recipe, query, found, b, candidates[b], walk, plain))
    return replace(found, traces=traces)


def _walks(
    recipe: PolicyRAG, found: PolicyRAGResult, ranked: Reranked, starts: Seeds, eta: NDArray[Any]
) -> list[_Walk | None]:
    """The walk of each question, None where it has no seed or reaches no passage."""
    row, made, walks = -1, dict[tuple[float, ...], Transitions](), list[_Walk | None]()
    for b, seeds in enumerate(found.seeds):
        row += bool(seeds)
        if not seeds or ranked.hits.counts[b] == 0:
            walks.append(None)
            continue
        weights = tuple((eta if eta.ndim == 1 else eta[row]).tolist())
        if weights not in made:
            made[weights] = _transitions(recipe, weights)
        walks.append(_Walk(recipe, starts.nodes[row], starts.weights[row], weights, made[weights]))
    return walks


def _transitions(recipe: PolicyRAG, eta: tuple[float, ...]) -> Transitions:
    walk = recipe.policy.walk
    return Transitions(recipe.prepared.graph, eta, walk.edge_type_norm, walk.damping)


class _Walk:
    """One question's walk, seen seed by seed."""

    def __init__(
        self,
        recipe: PolicyRAG,
        nodes: NDArray[np.int64],
        weights: NDArray[np.float64],
        eta: tuple[float, ...],
        transitions: Transitions,
    ) -> None:
        held = (nodes >= 0) & (weights > 0)
        self.nodes, self.mass = nodes[held], weights[held] / weights[held].sum()
        self._recipe, self._eta, self._transitions = recipe, eta, transitions

    def attributions(self, passages: Sequence[int]) -> NDArray[np.float64]:
        """What each seed gives to each passage's projected score, (seeds, passages); columns sum to the scores.

        A walk is linear in its restart but for its normalisation: with y = d P'y + (1 - d) s and x = y / sum(y), mass m
        that P loses in x gives sum(y) = (1 - d) / (1 - d + d m).
        """
        walk, prepared = self._recipe.policy.walk, self._recipe.prepared
        options: dict[str, Any] = {"tol": walk.tol, "edge_type_norm": walk.edge_type_norm}
        each = ppr(
            prepared.graph,
            Seeds(self.nodes[:, None]),
            damping=walk.damping,
            edge_type_weights=self._eta,
            threads=self._recipe.threads,
            **options,
        ).scores
        shares = self.mass * self._sums(each)
        shares /= shares.sum()
        projected = project(each, prepared.incidence, scale=prepared.scale, threads=self._recipe.threads)
        return np.asarray(shares[:, None] * projected[:, list(passages)].astype(np.float64), np.float64)

    def _sums(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        damping = self._recipe.policy.walk.damping
        lost = x.astype(np.float64) @ (1.0 - self._transitions.kept)
        return np.asarray((1.0 - damping) / (1.0 - damping + damping * lost), np.float64)

    def paths(self, passages: Sequence[int]) -> dict[int, list[list[Step]]]:
        """The strongest paths to each of the passages, from a few seeds."""
        incidence = self._recipe.prepared.incidence
        rows = {p: incidence.indices[incidence.indptr[p] : incidence.indptr[p + 1]].astype(np.int64) for p in passages}
        return self._transitions.paths(dict(zip(self.nodes.tolist(), self.mass.tolist(), strict=True)), rows)


def _trace(
    recipe: PolicyRAG,
    query: str,
    found: PolicyRAGResult,
    b: int,
    candidates: Candidates,
    walk: _Walk | None,
    hits: list[dict[str, Any]],
) -> dict[str, Any]:
    names, seeds = recipe.names, found.seeds[b]
    return {
        "query": query,
        "ranked_by": "policy" if walk is not None else "vectors",
        "seeds": [
            {"name": names[one.entity], **one._asdict(), "share": seeds.get(one.entity, 0.0)}
            for one in sorted(candidates.values(), key=lambda one: (-seeds.get(one.entity, 0.0), one.entity))
        ],
        "facts": [{**one._asdict(), "head": names[one.head], "tail": names[one.tail]} for one in found.facts[b]],
        "passage_seeds": [] if walk is None else _passage_seeds(recipe, walk),
        "hits": hits,
    }


def _passage_seeds(recipe: PolicyRAG, walk: _Walk) -> list[dict[str, Any]]:
    pairs = zip(walk.nodes.tolist(), walk.mass.tolist(), strict=True)
    return [{**named_node(recipe, node), "mass": mass} for node, mass in pairs if node < recipe.index.num_passages]


def _attributed(recipe: PolicyRAG, walk: _Walk, given: NDArray[np.float64]) -> list[list[dict[str, Any]]]:
    """For each hit the seeds that give it something, and how much."""
    names = [named_node(recipe, node) for node in walk.nodes.tolist()]
    return [
        [{**name, "score": share} for name, share in zip(names, shares, strict=True) if share > 0]
        for shares in given.T.tolist()
    ]


def _hits(
    recipe: PolicyRAG,
    hits: Sequence[dict[str, Any]],
    ranked: Reranked,
    b: int,
    attributed: Sequence[list[dict[str, Any]]],
    paths: Mapping[int, list[list[dict[str, Any]]]],
) -> list[dict[str, Any]]:
    """The hits with what their scores are made of, where they come from, and what leads there."""
    place = {passage: at for at, (passage, _) in enumerate(ranked.pool.row(b))}
    largest, weights, traced = float(ranked.pool.scores[b, 0]), recipe.term_weights, []
    for hit, shares in zip(hits, attributed, strict=True):
        at = place[hit["passage"]]
        pooled = float(ranked.pool.scores[b, at])
        added = {name: weights[name] * float(phi[b, at]) for name, phi in ranked.terms.items() if weights[name]}
        terms = {"projected": pooled / largest, **added}
        ways = paths.get(hit["passage"], [])
        traced.append({**hit, "projected": pooled, "terms": terms, "attribution": shares, "paths": ways})
    return traced
