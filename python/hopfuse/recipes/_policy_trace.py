"""What a PolicyRAG search did, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..ops.ppr import ppr
from ..ops.projection import project
from ..types import Seeds
from ._phrase_seeds import Candidates
from ._policy_graph import TYPES
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
    walked = iter(range(len(starts)))
    made: dict[tuple[float, ...], Transitions] = {}
    traces = []
    for b, query in enumerate(queries):
        walk = None
        if found.seeds[b]:
            row = next(walked)
            weights = tuple((eta if eta.ndim == 1 else eta[row]).tolist())
            if weights not in made:
                made[weights] = _transitions(recipe, weights)
            if ranked.hits.counts[b] > 0:
                walk = _Walk(recipe, starts.nodes[row], starts.weights[row], weights, made[weights])
        traces.append(_trace(recipe, query, b, found, candidates[b], ranked, walk))
    return replace(found, traces=traces)


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

    def paths(self, passages: Sequence[int]) -> dict[int, list[Step]]:
        """The strongest path to each of the passages."""
        incidence = self._recipe.prepared.incidence
        rows = {p: incidence.indices[incidence.indptr[p] : incidence.indptr[p + 1]].astype(np.int64) for p in passages}
        return self._transitions.paths(dict(zip(self.nodes.tolist(), self.mass.tolist(), strict=True)), rows)


def _trace(
    recipe: PolicyRAG,
    query: str,
    b: int,
    found: PolicyRAGResult,
    candidates: Candidates,
    ranked: Reranked,
    walk: _Walk | None,
) -> dict[str, Any]:
    names, seeds = recipe.names, found.seeds[b]
    hits = found.hits.row(b)
    return {
        "query": query,
        "ranked_by": "policy" if walk is not None else "vectors",
        "seeds": [
            {"name": names[one.entity], **one._asdict(), "share": seeds.get(one.entity, 0.0)}
            for one in sorted(candidates.values(), key=lambda one: (-seeds.get(one.entity, 0.0), one.entity))
        ],
        "facts": [{**one._asdict(), "head": names[one.head], "tail": names[one.tail]} for one in found.facts[b]],
        "passage_seeds": [] if walk is None else _passage_seeds(recipe, walk),
        "hits": [_plain(recipe, *hit) for hit in hits] if walk is None else _hits(recipe, b, hits, ranked, walk),
    }


def _passage_seeds(recipe: PolicyRAG, walk: _Walk) -> list[dict[str, Any]]:
    pairs = zip(walk.nodes.tolist(), walk.mass.tolist(), strict=True)
    return [{**_named(recipe, node), "mass": mass} for node, mass in pairs if node < recipe.index.num_passages]


def _plain(recipe: PolicyRAG, passage: int, score: float) -> dict[str, Any]:
    index = recipe.index
    return {"passage": passage, "id": index.passage_ids[passage], "title": index.titles[passage], "score": score}


def _hits(
    recipe: PolicyRAG, b: int, hits: Sequence[tuple[int, float]], ranked: Reranked, walk: _Walk
) -> list[dict[str, Any]]:
    passages = [passage for passage, _ in hits]
    place = {passage: at for at, (passage, _) in enumerate(ranked.pool.row(b))}
    given, paths = walk.attributions(passages), walk.paths(passages)
    largest = float(ranked.pool.scores[b, 0])
    traced = []
    for at, (passage, score) in enumerate(hits):
        pooled = float(ranked.pool.scores[b, place[passage]])
        phis = {name: float(phi[b, place[passage]]) for name, phi in ranked.terms.items()}
        weights = recipe.term_weights
        traced.append(
            {
                **_plain(recipe, passage, score),
                "projected": pooled,
                "terms": {
                    "projected": pooled / largest,
                    **{name: weights[name] * phi for name, phi in phis.items() if weights[name]},
                },
                "attribution": [
                    {**_named(recipe, node), "score": float(share)}
                    for node, share in zip(walk.nodes.tolist(), given[:, at], strict=True)
                    if share > 0
                ],
                "path": [
                    {
                        **_named(recipe, step.node),
                        "edge": None if step.edge is None else TYPES[step.edge],
                        "strength": step.strength,
                    }
                    for step in paths.get(passage, [])
                ],
            }
        )
    return traced


def _named(recipe: PolicyRAG, node: int) -> dict[str, Any]:
    first = recipe.index.num_passages
    if node < first:
        return {"kind": "passage", "number": node, "name": recipe.index.titles[node] or recipe.index.passage_ids[node]}
    return {"kind": "entity", "number": node - first, "name": recipe.names[node - first]}
