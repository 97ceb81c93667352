"""Float64 oracle of add_passage_seeds and add_entity_seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Incidence


def add_passage_seeds(
    seeds: Sequence[Mapping[int, float]], hits: Sequence[Sequence[tuple[int, float]]], mass: float
) -> list[dict[int, float]]:
    """Return {node: weight} per query: seeds scaled to sum 1, plus ``mass`` split by score among hits with score > 0.

    Examples
    --------
    >>> from hopfuse.reference import add_passage_seeds
    >>> add_passage_seeds([{1: 1.0, 2: 3.0}], [[(7, 0.5), (8, 0.0)]], 0.5)
    [{1: 0.25, 2: 0.75, 7: 0.5}]
    """
    restarts = []
    for row, found in zip(seeds, hits, strict=True):
        total = sum(row.values())
        restart = {node: weight / total if total > 0 else weight for node, weight in row.items()}
        positive = {node: score for node, score in found if score > 0}
        for node, score in positive.items():
            restart[node] = restart.get(node, 0.0) + mass * score / sum(positive.values())
        restarts.append(restart)
    return restarts


def add_entity_seeds(
    seeds: Sequence[Mapping[int, float]],
    hits: Sequence[Sequence[tuple[int, float]]],
    mentions: Incidence,
    mass: float,
    frequency: Any = None,
) -> list[dict[int, float]]:
    """Return {node: weight} per query: a share 1 - ``mass`` of the seeds and ``mass`` of the entities of the hits.

    An entity e gets the sum over the hits p of w_pe / (r * frequency_e), with r the rank of p from 1, and nothing if
    its frequency is 0. If a row has no seeds or no entities, the other gets all.

    Examples
    --------
    >>> from hopfuse import Incidence
    >>> from hopfuse.reference import add_entity_seeds
    >>> mentions = Incidence.from_pairs([0, 0, 1], [2, 3, 3], num_rows=2, num_columns=4)
    >>> add_entity_seeds([{2: 5.0}, {}], [[(0, 0.9)], [(1, 0.9)]], mentions, 0.75)
    [{2: 0.75, 3: 0.25}, {3: 1.0}]
    """
    starts, ends = mentions.indptr[:-1].tolist(), mentions.indptr[1:].tolist()
    counts = [mentions.indices.tolist().count(node) for node in range(mentions.num_columns)]
    restarts = []
    for query, (row, found) in enumerate(zip(seeds, hits, strict=True)):
        often = counts if frequency is None else (frequency if frequency.ndim == 1 else frequency[query])
        more: dict[int, float] = {}
        for rank, (passage, _) in enumerate(found, 1):
            for entry in range(starts[passage], ends[passage]):
                weight = 1.0 if mentions.weights is None else float(mentions.weights[entry])
                node = int(mentions.indices[entry])
                more[node] = more.get(node, 0.0) + (weight / (rank * int(often[node])) if often[node] else 0.0)
        own, other = sum(row.values()), sum(more.values())
        kept = 1.0 - mass if own > 0 and other > 0 else 1.0
        restart = {node: kept * weight / own if own > 0 else weight for node, weight in row.items()}
        if other > 0:
            for node, weight in more.items():
                restart[node] = restart.get(node, 0.0) + (mass if own > 0 else 1.0) * weight / other
        restarts.append(restart)
    return restarts
