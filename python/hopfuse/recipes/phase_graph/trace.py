"""Trace a PhaseGraph search, question by question, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...index import Index
from ...ops.calibration import calibrate
from ...ops.fusion import fuse
from ...ops.seeding import add_passage_seeds
from ...types import Hits
from .._parts.direct import FusedOutcome, direct_trace
from .._parts.facts import named_passage
from .._parts.paths import walk_path_records
from .._parts.seeding import seed_trace
from .config import PhaseGraphConfig


def trace_queries(index: Index, config: PhaseGraphConfig, outcome: FusedOutcome) -> list[dict[str, Any]]:
    """Return a trace per question: seeds, lists with raw and calibrated scores, temperatures, contributions, paths."""
    starts, lists, hits, view = outcome.starts, outcome.lists, outcome.hits, outcome.view
    assert starts is not None
    weights = config.weights(tuple(lists), outcome.direct)
    scaled = {leg: _scaled(config, pool, at, len(lists)) for at, (leg, pool) in enumerate(lists.items())}
    shares = {leg: _shares(config, pool, at, len(lists)) for at, (leg, pool) in enumerate(lists.items())}
    if config.passage_seeds > 0:
        dense = calibrate(lists["dense"], "min_max", backend="cpu")
        starts = add_passage_seeds(starts, dense, config.passage_seeds, backend="cpu")
    walk: dict[str, Any] = {"damping": config.damping, "edge_weights": config.edge_weights}
    paths = walk_path_records(index, starts, hits, lists["graph"], **walk)
    traces = []
    for b in range(len(hits)):
        own = {leg: float(one[b]) for leg, one in weights.items()}
        direct = direct_trace(index, outcome.rarest[b], float(outcome.direct[b]))
        legs = {leg: _leg(index, config, lists[leg], scaled[leg], shares[leg], b) for leg in lists}
        traces.append(
            {
                "query": b,
                "seeds": [seed_trace(index, seed) for seed in outcome.seeds[b]],
                "left_out": [],
                "allowed": None if view is None else view.num_allowed(b),
                "fell_back": bool(outcome.fell_back[b]),
                **({"direct": direct} if config.by_question else {}),
                "temperatures": {leg: _temperature(config, scaled[leg], b) for leg in lists},
                **{leg: list(rows.values()) for leg, rows in legs.items()},
                "hits": [_hit(index, config, passage, score, legs, own, paths[b]) for passage, score in hits.row(b)],
            }
        )
    return traces


def _scaled(config: PhaseGraphConfig, pool: Hits, at: int, legs: int) -> Hits | None:
    """Return a list with calibrated scores, or None if the method reads ranks."""
    return None if config.rule is None else calibrate(pool, config.rule.of_list(at, legs))


def _shares(config: PhaseGraphConfig, pool: Hits, at: int, legs: int) -> Hits | None:
    """Return the result of fusing a list alone with weight 1, or None if fused scores are no sums of these."""
    if not config.adds_up:
        return None
    rule = None if config.rule is None else config.rule.of_list(at, legs)
    return fuse([pool], method=config.fusion, calibration=rule, weights=(1.0,), k=pool.shape[1])


def _temperature(config: PhaseGraphConfig, scaled: Hits | None, b: int) -> float | None:
    temperature = getattr(config.fusion, "temperature", None)
    if temperature is None or scaled is None or scaled.counts[b] == 0 or getattr(config.fusion, "wasserstein", 0.0):
        return None
    if temperature != "auto":
        return float(temperature)
    # Not by NumPy, whose logarithm differs between processors.
    energies = [-math.log(score + 1e-9) for score in scaled.scores[b, : int(scaled.counts[b])].tolist()]
    return 2.0 / 3.0 * math.fsum(energies) / len(energies)


def _leg(
    index: Index, config: PhaseGraphConfig, pool: Hits, scaled: Hits | None, shares: Hits | None, b: int
) -> dict[int, dict[str, Any]]:
    scale = "percentile" if config.rule is not None and config.rule.method == "pit" else "calibrated"
    rows = {}
    for position, (passage, score) in enumerate(pool.row(b)):
        row = {**named_passage(index, passage), "rank": position + 1, "score": score}
        rows[passage] = row if scaled is None else row | {scale: float(scaled.scores[b, position])}
    if shares is not None:
        name = "probability" if hasattr(config.fusion, "temperature") else "share"
        for passage, share in shares.row(b):
            rows[passage][name] = share
    return rows


def _hit(
    index: Index,
    config: PhaseGraphConfig,
    passage: int,
    score: float,
    legs: Mapping[str, Mapping[int, Mapping[str, Any]]],
    weights: Mapping[str, float],
    paths: Mapping[int, list[list[dict[str, Any]]]],
) -> dict[str, Any]:
    held = {leg: rows[passage] for leg, rows in legs.items() if passage in rows}
    hit: dict[str, Any] = {
        **named_passage(index, passage),
        "score": score,
        "ranks": {leg: row["rank"] for leg, row in held.items()},
        "consensus": config.consensus if len(held) >= 2 else 0.0,
    }
    if config.adds_up:
        shares = {leg: row.get("probability", row.get("share")) for leg, row in held.items()}
        hit["contributions"] = {leg: weights[leg] * share for leg, share in shares.items()}
    if "graph" in held:
        hit["paths"] = paths.get(passage, [])
    return hit
