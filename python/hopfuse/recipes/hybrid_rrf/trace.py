"""Trace a HybridRRF search, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...index import Index
from .._parts.direct import FusedOutcome, direct_trace
from .._parts.facts import named_passage
from .._parts.paths import walk_path_records
from .._parts.seeding import seed_trace
from .config import HybridRRFConfig


def trace_ranks(index: Index, config: HybridRRFConfig, outcome: FusedOutcome) -> list[dict[str, Any]]:
    """Return a trace per question: seeds, each list, and for each hit its ranks, their contributions, and paths."""
    starts, lists, hits, view = outcome.starts, outcome.lists, outcome.hits, outcome.view
    weights = config.leg_weights(tuple(lists), outcome.direct)
    paths: list[dict[int, list[list[dict[str, Any]]]]] = [{} for _ in range(len(hits))]
    if starts is not None:
        paths = walk_path_records(index, starts, hits, lists["graph"], damping=config.damping, edge_weights=None)
    traces = []
    for b in range(len(hits)):
        own = {leg: float(one[b]) for leg, one in weights.items()}
        rows = {leg: found.row(b) for leg, found in lists.items()}
        ranks = {leg: {passage: at for at, (passage, _) in enumerate(row, 1)} for leg, row in rows.items()}
        named = outcome.seeds[b] if outcome.seeds else []
        by_question = starts is not None and config.by_question
        traces.append(
            {
                "query": b,
                "seeds": [seed_trace(index, seed) for seed in named],
                "left_out": [],
                "allowed": None if view is None else view.num_allowed(b),
                "fell_back": bool(outcome.fell_back[b]),
                **({"direct": direct_trace(index, outcome.rarest[b], float(outcome.direct[b]))} if by_question else {}),
                **{leg: _pool(index, row) for leg, row in rows.items()},
                "hits": [_hit(index, config, passage, score, ranks, own, paths[b]) for passage, score in hits.row(b)],
            }
        )
    return traces


def _pool(index: Index, row: Sequence[tuple[int, float]]) -> list[dict[str, Any]]:
    return [{**named_passage(index, passage), "rank": at, "score": score} for at, (passage, score) in enumerate(row, 1)]


def _hit(
    index: Index,
    config: HybridRRFConfig,
    passage: int,
    score: float,
    ranks: Mapping[str, Mapping[int, int]],
    weights: Mapping[str, float],
    paths: Mapping[int, list[list[dict[str, Any]]]],
) -> dict[str, Any]:
    held = {leg: row[passage] for leg, row in ranks.items() if passage in row}
    hit: dict[str, Any] = {
        **named_passage(index, passage),
        "score": score,
        "ranks": held,
        "prior": 1.0 if config.importance is None else float(config.importance.factors[passage]),
    }
    if config.fusion == "rrf":
        hit["contributions"] = {leg: weights[leg] / (config.rank_constant + rank) for leg, rank in held.items()}
    if "graph" in held:
        hit["paths"] = paths.get(passage, [])
    return hit
