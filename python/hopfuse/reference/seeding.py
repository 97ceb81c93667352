"""Float64 oracle of add_passage_seeds, add_entity_seeds and cover_seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Incidence

__all__ = ["add_entity_seeds", "add_passage_seeds", "cover_seeds"]


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


def cover_seeds(
    hits: Sequence[Sequence[tuple[int, float]]],
    seeds: Sequence[Mapping[int, float]],
    mentions: Incidence,
    k: int = 3,
    least: float = 0.3,
) -> list[list[tuple[int, float]]]:
    """Return the first hit of each query, and the first hit that mentions each heavy seed, in the order of the list.

    Seeds are heavy if their weight is at least ``least`` times the largest of the query, and above 0. The heaviest
    comes first, then the lower node; a hit counts once, and at most ``k`` are chosen. An entry with a weight of 0 is
    not a mention.

    Examples
    --------
    >>> from hopfuse import Incidence
    >>> from hopfuse.reference import cover_seeds
    >>> mentions = Incidence.from_pairs([0, 1, 2], [3, 3, 4], num_rows=3, num_columns=5)
    >>> cover_seeds([[(0, 0.9), (1, 0.8), (2, 0.7)]], [{3: 1.0, 4: 0.5}], mentions)
    [[(0, 0.9), (2, 0.7)]]
    """
    chosen = []
    for found, row in zip(hits, seeds, strict=True):
        floor = least * max(row.values(), default=0.0)
        heavy = [node for node, weight in row.items() if weight > 0 and weight >= floor]
        kept = set(range(len(found))[:1])
        for seed in sorted(heavy, key=lambda node: (-row[node], node)):
            holding = [at for at, (passage, _) in enumerate(found) if seed in _mentioned(mentions, passage)]
            if len(kept) < k:
                kept.update(holding[:1])
        chosen.append([found[at] for at in sorted(kept)])
    return chosen


def _mentioned(mentions: Incidence, passage: int) -> set[int]:
    """Return the nodes with a weight above 0 in a row."""
    entries = slice(int(mentions.indptr[passage]), int(mentions.indptr[passage + 1]))
    nodes = mentions.indices[entries].tolist()
    weights = [1.0] * len(nodes) if mentions.weights is None else mentions.weights[entries].tolist()
    return {node for node, weight in zip(nodes, weights, strict=True) if weight > 0}
