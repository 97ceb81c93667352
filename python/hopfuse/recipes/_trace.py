"""What a PhaseGraph search did, query by query, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..index import Index
from ..ops.calibration import calibrate
from ..ops.fusion import fuse
from ..types import Hits
from ._seeding import Seed

if TYPE_CHECKING:
    from .phase_graph import PhaseGraph


def trace_queries(
    recipe: PhaseGraph, seeds: list[list[Seed]], pools: Mapping[str, Hits], hits: Hits
) -> list[dict[str, Any]]:
    """One trace per query: seeds, each leg's pool raw and calibrated, temperatures, contributions."""
    ranks = {leg: calibrate(pool, "pit", ties=recipe.ties) for leg, pool in pools.items()}
    probabilities = {leg: _probabilities(recipe, pool) for leg, pool in pools.items()}
    traces = []
    for b in range(len(hits)):
        legs = {leg: _leg(recipe, pools[leg], ranks[leg], probabilities[leg], b) for leg in pools}
        traces.append(
            {
                "query": b,
                "seeds": [seed_trace(recipe.index, seed) for seed in seeds[b]],
                "temperatures": {leg: _temperature(recipe, ranks[leg], b) for leg in pools},
                **{leg: list(rows.values()) for leg, rows in legs.items()},
                "hits": [_hit(recipe, passage, score, legs) for passage, score in hits.row(b)],
            }
        )
    return traces


def _probabilities(recipe: PhaseGraph, pool: Hits) -> Hits:
    """A list's Boltzmann probabilities: what fusing it alone with weight 1 gives."""
    return fuse(
        [pool], method="boltzmann", temperature=recipe.temperature, weights=(1.0,), ties=recipe.ties, k=pool.shape[1]
    )


def _temperature(recipe: PhaseGraph, ranks: Hits, b: int) -> float | None:
    n = int(ranks.counts[b])
    if n == 0:
        return None
    if recipe.temperature != "auto":
        return float(recipe.temperature)
    energies = -np.log(ranks.scores[b, :n].astype(np.float64) + 1e-9)
    return float(2.0 / 3.0 * energies.mean())


def seed_trace(index: Index, seed: Seed) -> dict[str, Any]:
    """Why an entity is a seed."""
    name, frequency = index.entity_names[seed.entity], index.passage_frequency
    return {
        "entity": seed.entity,
        "name": name,
        "surface": seed.surface or name,
        "match": seed.match,
        "similarity": seed.similarity,
        "passage_frequency": None if frequency is None else int(frequency[seed.entity]),
        "weight": seed.weight,
    }


def _leg(recipe: PhaseGraph, pool: Hits, ranks: Hits, probabilities: Hits, b: int) -> dict[int, dict[str, Any]]:
    probability = dict(probabilities.row(b))
    return {
        passage: {
            "passage": passage,
            "title": recipe.index.titles[passage],
            "rank": position + 1,
            "score": score,
            "percentile": float(ranks.scores[b, position]),
            "probability": probability[passage],
        }
        for position, (passage, score) in enumerate(pool.row(b))
    }


def _hit(recipe: PhaseGraph, passage: int, score: float, legs: dict[str, Any]) -> dict[str, Any]:
    held = {leg: rows[passage] for leg, rows in legs.items() if passage in rows}
    return {
        "passage": passage,
        "id": recipe.index.passage_ids[passage],
        "title": recipe.index.titles[passage],
        "score": score,
        "contributions": {leg: recipe.weights[leg] * row["probability"] for leg, row in held.items()},
        "consensus": recipe.consensus if len(held) >= 2 else 0.0,
    }
