"""Float64 oracle of add_passage_seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def add_passage_seeds(
    seeds: Sequence[Mapping[int, float]], hits: Sequence[Sequence[tuple[int, float]]], mass: float
) -> list[dict[int, float]]:
    """Restarts, {node: weight} per query: seeds scaled to sum 1, and ``mass`` shared by the hits with score > 0.

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
