"""The ways of ranking that a demo shows: a recipe, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import Hits, dense_topk, fuse
from .demo_asked import Asked, Contest, Rows
from .mentioned import ENTITIES
from .policy import differences
from .recipe_choice import Chosen

DEPTH = 10
BIAS = 1e-6  # of the graph's list over an equal score of the vectors', as TripleHybrid has it


@dataclass(frozen=True)
class Ways:
    """How to rank in several ways, by name: the baseline first, the recipe last; and what is said of the recipe."""

    ranked: Callable[[Contest, Rows], dict[str, Hits]]
    said: Callable[[Chosen], str]


@dataclass(frozen=True)
class Judged:
    """What is shown of each ranking, by metric, and the metric that wins and losses are of."""

    metrics: dict[str, str]
    compared: str


EVIDENCE = Judged({"recall@5": "recall@5", "last_hop@5": "last hop@5", "last_hop@10": "last hop@10"}, "last_hop@10")
ANSWERS = Judged({"hit@1": "hit@1", "hit@10": "hit@10", "recall@10": "recall@10"}, "hit@10")


def ways_of(contest: Contest) -> Ways:
    """Those of the recipe; of passages where its entities rank them."""
    return MENTIONS if contest.mentioned is not None else WAYS[contest.chosen.name]


def judged_by(asked: Asked) -> Judged:
    """Answers by whether one is found, evidence by how much of it."""
    return ANSWERS if asked.answers else EVIDENCE


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
    return {name: widened(hits) for name, hits in _entities(contest, rows, DEPTH).items()}


def _by_mention(contest: Contest, rows: Rows) -> dict[str, Hits]:
    view = contest.mentioned
    assert view is not None
    assert view.index.corpus is not None
    dense = dense_topk(contest.passage_vectors(rows), view.index.corpus, DEPTH, threads=view.threads)
    found = _entities(contest, rows, view.entities)
    return {"dense": dense} | {name: view.passages(hits, DEPTH) for name, hits in found.items()}


def _entities(contest: Contest, rows: Rows, k: int) -> dict[str, Hits]:
    """The entities of TripleHybrid's lists, of the two fused on one scale, and its own."""
    found = contest.search(rows, k)
    both = [found.lists["vector"], found.lists["graph"]]
    scaled = fuse(both, method="max", bias=(0.0, BIAS), calibration="min_max", k=k)
    return {"vector": both[0], "graph": both[1], "hybrid, min_max": scaled, "TripleHybrid": found.hits}


def _phase_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    return f"alpha {recipe.alpha:g}, lists of {recipe.dense_k} and {recipe.graph_k}, damping {recipe.damping:g}"


def _hybrid_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    weights = ", ".join(f"{leg} {recipe.weights[leg]:g}" for leg in ("lexical", "dense", "graph"))
    words = type(recipe.lexical).__name__
    return f"words by {words}; weights {weights}; k {recipe.rank_constant:g}, damping {recipe.damping:g}"


def _policy_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    changed = [f"{name} {value}" for name, value, _ in differences(recipe.policy) if not name.startswith("answers.")]
    aligned = "names and vectors" if recipe.encoder is not None and recipe.index.entity_corpus is not None else "names"
    return f"policy: {', '.join(changed) or 'the default'}; aligned by {aligned}"


def _triple_said(chosen: Chosen) -> str:
    recipe: Any = chosen.recipe
    return f"{recipe.seeds} seeds, lists of {recipe.vector_k} and {recipe.graph_k}, {recipe.hops} hop"


def _mentions_said(chosen: Chosen) -> str:
    return f"{_triple_said(chosen)}; a passage has the scores of the {ENTITIES} best entities that it mentions"


WAYS = {
    "phase-graph": Ways(_phase_graph, _phase_said),
    "policy-rag": Ways(_policy_rag, _policy_said),
    "hybrid-rrf": Ways(_hybrid_rrf, _hybrid_said),
    "triple-hybrid": Ways(_triple_hybrid, _triple_said),
}
MENTIONS = Ways(_by_mention, _mentions_said)
