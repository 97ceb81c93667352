"""What a PhaseGraph search did, query by query, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..index import Index
from ..ops.calibration import calibrate
from ..ops.fusion import fuse
from ..types import Hits
from ._allowed import View
from ._fusing import adds_up
from ._seeding import Seed

if TYPE_CHECKING:
    from .phase_graph import PhaseGraph

LEGS = ("dense", "graph", "lexical")


def trace_queries(
    recipe: PhaseGraph, seeds: list[list[Seed]], found: Mapping[str, Hits], view: View | None
) -> list[dict[str, Any]]:
    """One trace per query: seeds, each leg's pool raw and on the method's scale, temperatures, contributions."""
    pools = {leg: found[leg] for leg in LEGS if leg in found}
    scaled = {leg: _scaled(recipe, pool, at, len(pools)) for at, (leg, pool) in enumerate(pools.items())}
    shares = {leg: _shares(recipe, pool, at, len(pools)) for at, (leg, pool) in enumerate(pools.items())}
    fused, allowed = found.get("fused"), None if view is None else view.passages.sum(axis=1)[view.of]
    traces = []
    for b in range(len(found["hits"])):
        legs = {leg: _leg(recipe, pools[leg], scaled[leg], shares[leg], b) for leg in pools}
        counted = None if view is None or view.frequency is None else view.frequency[view.of[b]]
        before = None if fused is None else {p: (at, s) for at, (p, s) in enumerate(fused.row(b), 1)}
        traces.append(
            {
                "query": b,
                "seeds": [seed_trace(recipe.index, seed, counted) for seed in seeds[b] if seed.weight > 0],
                "left_out": [seed_trace(recipe.index, seed, counted) for seed in seeds[b] if not seed.weight > 0],
                "allowed": None if allowed is None else int(allowed[b]),
                "temperatures": {leg: _temperature(recipe, scaled[leg], b) for leg in pools},
                **{leg: list(rows.values()) for leg, rows in legs.items()},
                "hits": [_hit(recipe, passage, score, legs, before) for passage, score in found["hits"].row(b)],
            }
        )
    return traces


def _scaled(recipe: PhaseGraph, pool: Hits, at: int, legs: int) -> Hits | None:
    """What the method reads of a list; None where that is ranks alone."""
    return None if recipe.rule is None else calibrate(pool, recipe.rule.of_list(at, legs))


def _shares(recipe: PhaseGraph, pool: Hits, at: int, legs: int) -> Hits | None:
    """What fusing a list alone with weight 1 gives, where fused scores are sums of that."""
    if not adds_up(recipe.method):
        return None
    rule = None if recipe.rule is None else recipe.rule.of_list(at, legs)
    return fuse([pool], method=recipe.method, calibration=rule, weights=(1.0,), k=pool.shape[1])


def _temperature(recipe: PhaseGraph, scaled: Hits | None, b: int) -> float | None:
    temperature = getattr(recipe.method, "temperature", None)
    if temperature is None or scaled is None or scaled.counts[b] == 0 or getattr(recipe.method, "wasserstein", 0.0):
        return None
    if temperature != "auto":
        return float(temperature)
    energies = -np.log(scaled.scores[b, : int(scaled.counts[b])].astype(np.float64) + 1e-9)
    return float(2.0 / 3.0 * energies.mean())


def seed_trace(index: Index, seed: Seed, counted: NDArray[np.int64] | None = None) -> dict[str, Any]:
    """Why an entity is a seed; its frequency is the index's unless others are given."""
    name, frequency = index.entity_names[seed.entity], index.passage_frequency if counted is None else counted
    return {
        "entity": seed.entity,
        "name": name,
        "surface": seed.surface or name,
        "match": seed.match,
        "similarity": seed.similarity,
        "passage_frequency": None if frequency is None else int(frequency[seed.entity]),
        "weight": seed.weight,
    }


def _leg(recipe: PhaseGraph, pool: Hits, scaled: Hits | None, shares: Hits | None, b: int) -> dict[int, dict[str, Any]]:
    scale = "percentile" if recipe.rule is not None and recipe.rule.method == "pit" else "calibrated"
    rows = {}
    for position, (passage, score) in enumerate(pool.row(b)):
        row = {"passage": passage, "title": recipe.index.titles[passage], "rank": position + 1, "score": score}
        rows[passage] = row if scaled is None else row | {scale: float(scaled.scores[b, position])}
    if shares is not None:
        name = "probability" if hasattr(recipe.method, "temperature") else "share"
        for passage, share in shares.row(b):
            rows[passage][name] = share
    return rows


def _hit(
    recipe: PhaseGraph,
    passage: int,
    score: float,
    legs: Mapping[str, Mapping[int, Mapping[str, Any]]],
    before: Mapping[int, tuple[int, float]] | None,
) -> dict[str, Any]:
    held = {leg: rows[passage] for leg, rows in legs.items() if passage in rows}
    hit: dict[str, Any] = {
        "passage": passage,
        "id": recipe.index.passage_ids[passage],
        "title": recipe.index.titles[passage],
        "score": score,
        "ranks": {leg: row["rank"] for leg, row in held.items()},
        "consensus": recipe.consensus if len(held) >= 2 else 0.0,
    }
    if adds_up(recipe.method):
        shares = {leg: row.get("probability", row.get("share")) for leg, row in held.items()}
        hit["contributions"] = {leg: recipe.weights[leg] * share for leg, share in shares.items()}
    if before is not None:
        hit["fused"] = dict(zip(("rank", "score"), before[passage], strict=True))
    return hit
