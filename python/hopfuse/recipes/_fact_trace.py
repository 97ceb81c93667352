"""What a search over triples did, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..ops.calibration import calibrate
from ..types import Hits, Triples
from ._facts import BIAS

if TYPE_CHECKING:
    from .triple_hybrid import TripleHybrid


def trace_questions(
    recipe: TripleHybrid,
    seeds: Hits | None,
    lists: Mapping[str, Hits],
    facts: NDArray[np.int64] | None,
    hits: Hits,
) -> list[dict[str, Any]]:
    """One trace per question: seeds, and for each hit its scores, the list that counts and the best triple.

    ``facts``: of each hit of the graph's list, the triple that it is there for.
    """
    triples, traces = recipe.triples, []
    scaled = {name: calibrate(found, recipe.calibration) for name, found in lists.items()}
    for b in range(len(hits)):
        scores = {name: dict(found.row(b)) for name, found in lists.items()}
        heights = {name: dict(found.row(b)) for name, found in scaled.items()}
        why = {} if facts is None else dict(zip(scores["graph"], facts[b].tolist(), strict=False))
        nearest = [] if seeds is None else seeds.row(b)
        traces.append(
            {
                "query": b,
                "seeds": [{"entity": e, "name": triples.entities[e], "score": score} for e, score in nearest],
                "hits": [_hit(triples, (entity, score), scores, heights, why) for entity, score in hits.row(b)],
            }
        )
    return traces


def _hit(
    triples: Triples,
    hit: tuple[int, float],
    scores: Mapping[str, Mapping[int, float]],
    heights: Mapping[str, Mapping[int, float]],
    why: Mapping[int, int],
) -> dict[str, Any]:
    entity, score = hit
    own = {name: row[entity] for name, row in scores.items() if entity in row}
    return {
        "entity": entity,
        "name": triples.entities[entity],
        "score": score,
        "scores": own,
        "by": max(own, key=lambda name: heights[name][entity] + (BIAS if name == "graph" else 0.0)),
        "triple": _fact(triples, why[entity], own["graph"]) if entity in why else None,
    }


def _fact(triples: Triples, fact: int, score: float) -> dict[str, Any]:
    head, relation, tail = triples.rows[fact].tolist()
    names = {"head": triples.entities[head], "relation": triples.relations[relation], "tail": triples.entities[tail]}
    return {"triple": fact, **names, "score": score}
