"""The ways of ranking that a demo shows: a recipe, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import Hits, dense_topk, fuse
from .demo_asked import Contest, Rows
from .policy import differences
from .recipe_choice import Chosen

DEPTH = 10
BIAS = 1e-6  # of the graph's list over an equal score of the vectors', as TripleHybrid has it


@dataclass(frozen=True)
class Ways:
    """How a recipe is judged: rankings by name, its own the last, the first the baseline.

    ``metrics``: what is shown of each, by metric; ``compared``: the one that wins and losses are of.
    """

    ranked: Callable[[Contest, Rows], dict[str, Hits]]
    metrics: dict[str, str]
    compared: str
    said: Callable[[Chosen], str]


def widened(hits: Hits) -> Hits:
    """The first ``DEPTH`` hits, with padding where the lists are shorter."""
    short = max(0, DEPTH - hits.shape[1])
    ids = np.pad(hits.ids, ((0, 0), (0, short)), constant_values=-1)[:, :DEPTH]
    scores = np.pad(hits.scores, ((0, 0), (0, short)), constant_values=-np.inf)[:, :DEPTH]
    return Hits(ids, scores, np.minimum(hits.counts, DEPTH))


def _phase_graph(contest: Contest, rows: Rows) -> dict[str, Hits]:
    found = contest.search(rows, DEPTH)
    both = fuse([found.dense, found.graph], method="rrf", k=DEPTH)
    return {"dense": widened(found.dense), "graph": widened(found.graph), "RRF": both, "PhaseGraph": found.hits}


def _hybrid_rrf(contest: Contest, rows: Rows) -> dict[str, Hits]:
    found = contest.search(rows, DEPTH)
    legs = {name: widened(found.lists[leg]) for name, leg in (("dense", "dense"), ("words", "lexical"))}
    return {**legs, "graph": widened(found.lists["graph"]), "HybridRRF": found.hits}


def _policy_rag(contest: Contest, rows: Rows) -> dict[str, Hits]:
    recipe: Any = contest.chosen.recipe
    texts, vectors, entities = contest.arguments(rows)
    found = recipe.search(texts, vectors=vectors, entities=entities, k=DEPTH)
    dense = dense_topk(vectors, recipe.index.corpus, DEPTH, threads=recipe.threads)
    return {"dense": dense, "projected": widened(found.pool), "PolicyRAG": found.hits}


def _triple_hybrid(contest: Contest, rows: Rows) -> dict[str, Hits]:
    found = contest.search(rows, DEPTH)
    both = [found.lists["vector"], found.lists["graph"]]
    scaled = fuse(both, method="max", bias=(0.0, BIAS), calibration="min_max", k=DEPTH)
    legs = {"vector": widened(both[0]), "graph": widened(both[1])}
    return {**legs, "hybrid, min_max": scaled, "TripleHybrid": found.hits}


def _phase_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    return f"alpha {recipe.alpha:g}, lists of {recipe.dense_k} and {recipe.graph_k}, damping {recipe.damping:g}"


def _hybrid_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    weights = ", ".join(f"{leg} {recipe.weights[leg]:g}" for leg in ("lexical", "dense", "graph"))
    return f"weights {weights}; k {recipe.rank_constant:g}, damping {recipe.damping:g}"


def _policy_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    changed = [f"{name} {value}" for name, value, _ in differences(recipe.policy) if not name.startswith("answers.")]
    aligned = "names and vectors" if recipe.encoder is not None and recipe.index.entity_corpus is not None else "names"
    return f"policy: {', '.join(changed) or 'the default'}; aligned by {aligned}"


def _triple_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    return f"{recipe.seeds} seeds, lists of {recipe.vector_k} and {recipe.graph_k}, {recipe.hops} hop"


_PASSAGES = {"recall@5": "recall@5", "last_hop@5": "last hop@5", "last_hop@10": "last hop@10"}
_ENTITIES = {"hit@1": "hit@1", "hit@10": "hit@10", "recall@10": "recall@10"}
WAYS = {
    "phase-graph": Ways(_phase_graph, _PASSAGES, "last_hop@10", _phase_said),
    "policy-rag": Ways(_policy_rag, _PASSAGES, "last_hop@10", _policy_said),
    "hybrid-rrf": Ways(_hybrid_rrf, _PASSAGES, "last_hop@10", _hybrid_said),
    "triple-hybrid": Ways(_triple_hybrid, _ENTITIES, "hit@10", _triple_said),
}
