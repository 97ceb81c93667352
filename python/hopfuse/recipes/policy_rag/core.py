"""The stages of PolicyRAG, in the order in which a question goes through them.

    question ─► names, vector ─► candidates ─► facts around them ─► gate ─► kept facts ─┐
        │                             └────────── align · spec · aliasOK ◄──────────────┘
        │                                                ▼
        ├─► vector ─► dense top-k ─► passage seeds ─► restart s ─► typed PPR ─► projection u = B'v ─► pool
        │                                                                                              ▼
        └─► title, coverage, path, hubs ────────────────────────────────────────────► re-ranking ─► top k

All questions of a batch that see the same passages go through every stage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...ops.calibration import calibrate
from ...ops.ppr import ppr
from ...ops.projection import project_topk
from ...ops.seeding import add_passage_seeds
from ...types import Hits, Seeds
from .._parts.hits import take
from .._parts.questions import seed_width
from .config import Policy
from .facts import FactFinder
from .gate import Verdict, judge
from .graph import PolicyGraph
from .language_model import LanguageModel
from .seeds import CandidateFinder, Candidates, phrase_seeds


class Questions(NamedTuple):
    """Questions that see the same passages."""

    texts: Sequence[str]
    vectors: NDArray[Any] | None  # in the space of entities and facts
    mentions: Sequence[Sequence[Any]]


class Start(NamedTuple):
    """Starts of the walks of a batch, and the reasons for them."""

    candidates: list[Candidates]
    facts: list[list[Verdict]]
    kept: list[list[Verdict]]
    seeds: list[dict[int, float]]  # entities and their shares


def start(
    policy: Policy,
    graph: PolicyGraph,
    questions: Questions,
    candidate_finder: CandidateFinder,
    fact_finder: FactFinder,
    llm: LanguageModel | None,
    backend: str,
) -> Start:
    """Return the seeds of each question, by its candidates and by the facts that the gate keeps."""
    texts, vectors, mentions = questions
    candidates = candidate_finder.find(texts, vectors, mentions, graph.specificity, backend)
    found = fact_finder.find(texts, vectors, candidates, backend)
    facts = judge(policy, llm, texts, found, candidates)
    kept = [[verdict for verdict in row if verdict.kept] for row in facts]
    candidates = candidate_finder.add_ends(texts, vectors, candidates, kept, graph.specificity, backend)
    weights = [phrase_seeds(*pair, policy.seeds.most) for pair in zip(candidates, kept, strict=True)]
    seeds = [{e: w / sum(row.values()) for e, w in row.items()} for row in weights]
    return Start(candidates, facts, kept, seeds)


def restart(
    policy: Policy,
    seeds: Sequence[dict[int, float]],
    dense: Hits | None,
    num_passages: int,
    *,
    backend: str,
    threads: int | None,
) -> tuple[NDArray[np.int64], Seeds]:
    """Return the questions that have seeds, and the restarts of their walks: entities, and the nearest passages."""
    seeded = np.flatnonzero([bool(row) for row in seeds])
    rows = [{num_passages + e: mass for e, mass in seeds[b].items()} for b in seeded.tolist()]
    starts = Seeds.from_rows(rows, seed_width(policy.seeds.most))
    if dense is not None and policy.passage_mass > 0:
        shares = calibrate(dense.head(policy.seeds.passage_list), "min_max", backend=backend, threads=threads)
        starts = add_passage_seeds(starts, take(shares, seeded), policy.passage_mass)
    return seeded, starts


def walk(
    nodes: Any, weights: Any, *, policy: Policy, graph: PolicyGraph, eta: Any, backend: str, threads: int | None
) -> Hits:
    """Return the pool of each restart: v = typed PPR, u = v or B'v by length and IPF, and its best passages."""
    v = ppr(
        graph.graph,
        Seeds(nodes, weights),
        damping=policy.walk.damping,
        tol=policy.walk.tol,
        edge_type_weights=eta,
        edge_type_norm=cast(Any, policy.walk.edge_type_norm),
        backend=backend,
        threads=threads,
    )
    pool = min(policy.reranking.pool, max(1, graph.num_passages))
    return project_topk(v.scores, graph.incidence, pool, scale=graph.scale, backend=backend, threads=threads)
