"""Traces of TripleHybrid, question by question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ops.calibration import calibrate
from ...types import Facts
from .config import Scale
from .core import BIAS, TripleRanking


def trace_questions(
    found: TripleRanking, calibration: Scale, facts: Facts | None, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return a trace per question: seeds, and for each hit its scores, the deciding list and the best triple."""
    traces = []
    scaled = {name: calibrate(hits, calibration) for name, hits in found.lists.items()}
    for b in range(len(found.hits)):
        scores = {name: dict(hits.row(b)) for name, hits in found.lists.items()}
        heights = {name: dict(hits.row(b)) for name, hits in scaled.items()}
        triples: dict[int, dict[str, Any]] = {}
        if facts is not None and found.best_facts is not None:
            best = zip(scores["graph"].items(), found.best_facts[b].tolist(), strict=False)
            triples = {entity: _triple(facts, names, fact, score) for (entity, score), fact in best}
        nearest = [] if found.seeds is None else found.seeds.row(b)
        hits = []
        for entity, score in found.hits.row(b):
            own = {name: row[entity] for name, row in scores.items() if entity in row}
            hits.append(
                {
                    "entity": entity,
                    "name": names[entity],
                    "score": score,
                    "scores": own,
                    "by": _deciding_list(entity, own, heights),
                    "triple": triples.get(entity),
                }
            )
        seeds = [{"entity": e, "name": names[e], "score": score} for e, score in nearest]
        traces.append({"query": b, "seeds": seeds, "hits": hits})
    return traces


def _deciding_list(entity: int, own: Mapping[str, float], heights: Mapping[str, Mapping[int, float]]) -> str:
    return max(own, key=lambda name: heights[name][entity] + (BIAS if name == "graph" else 0.0))


def _triple(facts: Facts, names: Sequence[str], fact: int, score: float) -> dict[str, Any]:
    head, relation, tail = facts.rows[fact].tolist()
    ends = {"head": names[head], "relation": facts.relations[relation], "tail": names[tail]}
    return {"triple": fact, **ends, "score": score}
