"""What a search by ranks did, query by query, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..types import Hits
from ._seeding import Seed
from ._trace import seed_trace

if TYPE_CHECKING:
    from .hybrid_rrf import HybridRRF


def trace_ranks(
    recipe: HybridRRF, seeds: Sequence[Sequence[Seed]], lists: Mapping[str, Hits], hits: Hits
) -> list[dict[str, Any]]:
    """One trace per query: seeds, each leg's list, and for each hit its ranks and what they gave."""
    traces = []
    for b in range(len(hits)):
        rows = {leg: found.row(b) for leg, found in lists.items()}
        ranks = {leg: {passage: at for at, (passage, _) in enumerate(row, 1)} for leg, row in rows.items()}
        traces.append(
            {
                "query": b,
                "seeds": [seed_trace(recipe.index, seed) for seed in seeds[b]] if seeds else [],
                **{leg: [_entry(recipe, at, *hit) for at, hit in enumerate(row, 1)] for leg, row in rows.items()},
                "hits": [_hit(recipe, passage, score, ranks) for passage, score in hits.row(b)],
            }
        )
    return traces


def _entry(recipe: HybridRRF, rank: int, passage: int, score: float) -> dict[str, Any]:
    return {"passage": passage, "title": recipe.index.titles[passage], "rank": rank, "score": score}


def _hit(recipe: HybridRRF, passage: int, score: float, ranks: Mapping[str, Mapping[int, int]]) -> dict[str, Any]:
    held = {leg: row[passage] for leg, row in ranks.items() if passage in row}
    hit: dict[str, Any] = {
        "passage": passage,
        "id": recipe.index.passage_ids[passage],
        "title": recipe.index.titles[passage],
        "score": score,
        "ranks": held,
        "prior": 1.0 if recipe.prior is None else float(recipe.prior.factors[passage]),
    }
    if recipe.fusion == "rrf":
        hit["contributions"] = {leg: recipe.weights[leg] / (recipe.rank_constant + r) for leg, r in held.items()}
    return hit
