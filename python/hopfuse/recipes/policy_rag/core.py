"""The stages of PolicyRAG, in order.

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
from ...ops.dense import check_queries, dense_topk
from ...ops.dice import dice_scores
from ...ops.ppr import ppr
from ...ops.projection import project_topk
from ...ops.seeding import add_passage_seeds
from ...types import Corpus, Facts, Hits, LabelSets, Seeds
from .._parts.config import needed
from .._parts.facts import fact_labels
from .._parts.hits import take
from .._parts.seeding import seed_width
from .config import Policy
from .gate import FoundFact, GateDecision, best_facts, facts_around, found_facts, judge
from .graph import PolicyGraph
from .language_model import LanguageModel
from .seeds import Candidates, WeighedCandidate, phrase_seeds, weighed, with_candidates


class Knowledge(NamedTuple):
    """The parts of an index, other than its graph, that a search reads."""

    facts: Facts | None
    names: Sequence[str]  # of the entities
    labels: LabelSets  # of the entities, then of the relations
    entities: Corpus | None  # vectors by cosine; None without an encoder
    fact_vectors: Corpus | None  # by cosine; None if facts are compared by their labels


class PolicyQuestions(NamedTuple):
    """Questions that see the same passages."""

    texts: Sequence[str]
    vectors: NDArray[Any] | None  # in the space of entities and facts
    mentioned: Sequence[Candidates]


class Start(NamedTuple):
    """The seeds of a batch's walks, and what they were chosen from."""

    candidates: list[list[WeighedCandidate]]
    facts: list[list[GateDecision]]
    kept: list[list[GateDecision]]
    seeds: list[dict[int, float]]  # shares by entity


def start(
    policy: Policy,
    graph: PolicyGraph,
    known: Knowledge,
    questions: PolicyQuestions,
    llm: LanguageModel | None,
    *,
    backend: str,
    threads: int | None,
) -> Start:
    """Return the seeds of each question, from its candidates and from the facts that the gate keeps."""
    texts, vectors, candidates = questions
    rules, facts, specificity, batch = policy.seeds, known.facts, graph.specificity, len(texts)
    run: dict[str, Any] = {"backend": backend, "threads": threads}
    corpus = known.entities if known.fact_vectors is None else known.fact_vectors
    if vectors is not None and corpus is not None:
        vectors = check_queries(vectors, corpus.dim, needs_length=True, backend=backend)

    if rules.source != "entities" and vectors is not None and known.entities is not None and len(known.entities):
        near = dense_topk(vectors, known.entities, rules.nearest, **run)
        candidates = [
            with_candidates(row, (e for e, _ in near.row(b)), "question", specificity)
            for b, row in enumerate(candidates)
        ]

    found: list[list[FoundFact]] = [[] for _ in texts]
    if facts is not None and len(facts) and batch:
        around = None if policy.facts.scope == "all" else facts_around(facts, candidates)
        if known.fact_vectors is not None:
            if vectors is None:
                raise needed("encoder", "fact_vectors=", "or vectors of the questions")
            allow = None if around is None else np.split(around.fact, around.indptr(batch)[1:-1])
            nearest = dense_topk(vectors, known.fact_vectors, policy.facts.candidates, allow=allow, **run)
            scored = [nearest.row(b) for b in range(batch)]
        else:
            assert around is not None
            labels, indptr = fact_labels(facts, around.fact), around.indptr(batch)
            scores = dice_scores(texts, known.labels, labels, indptr=indptr, **run)
            scored = best_facts(around, scores, batch, policy.facts.candidates)
        found = [found_facts(facts, known.names, row) for row in scored]

    verdicts = judge(policy, llm, texts, found, candidates)
    kept = [[verdict for verdict in row if verdict.kept] for row in verdicts]
    ends = [[end for verdict in row for end in (verdict.head, verdict.tail)] for row in kept]
    candidates = [with_candidates(row, some, "fact", specificity) for row, some in zip(candidates, ends, strict=True)]

    unnamed = [[e for e, candidate in row.items() if candidate.similarity is None] for row in candidates]
    lexical: list[dict[int, float]] = [{} for _ in texts]
    if any(unnamed):
        indptr = np.cumsum([0, *map(len, unnamed)])
        names = iter(
            dice_scores(texts, known.labels, [e for row in unnamed for e in row], indptr=indptr, **run).tolist()
        )
        lexical = [{e: next(names) for e in row} for row in unnamed]

    cosines: list[dict[int, float]] = [{} for _ in texts]
    most = max(map(len, candidates), default=0)
    if vectors is not None and known.entities is not None and most and rules.embedding:
        each = dense_topk(vectors, known.entities, most, allow=[sorted(row) for row in candidates], **run)
        cosines = [dict(each.row(b)) for b in range(batch)]

    weighted = [weighed(*row, rules) for row in zip(candidates, lexical, cosines, strict=True)]
    seeds = [phrase_seeds(row, some, rules.most) for row, some in zip(weighted, kept, strict=True)]
    return Start(weighted, verdicts, kept, seeds)


def restart(
    policy: Policy,
    seeds: Sequence[dict[int, float]],
    dense: Hits | None,
    num_passages: int,
    *,
    backend: str,
    threads: int | None,
) -> tuple[NDArray[np.int64], Seeds]:
    """Return the questions with seeds, and the restarts of their walks, at entities and the nearest passages."""
    seeded = np.flatnonzero([bool(row) for row in seeds])
    rows = [{num_passages + e: mass for e, mass in seeds[b].items()} for b in seeded.tolist()]
    starts = Seeds.from_rows(rows, seed_width(policy.seeds.most))
    if dense is not None and policy.passage_mass > 0:
        shares = calibrate(dense.head(policy.seeds.passage_list), "min_max", backend=backend, threads=threads)
        starts = add_passage_seeds(starts, take(shares, seeded), policy.passage_mass, backend=backend)
    return seeded, starts


def walk(
    nodes: Any, weights: Any, *, policy: Policy, graph: PolicyGraph, eta: Any, backend: str, threads: int | None
) -> Hits:
    """Return the best passages for each restart: v = typed PPR, u = v or B'v, scaled by length and IPF."""
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
