"""Systems that PyPI does not offer, by their documented formulas in plain Python floats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Ranked = list[tuple[int, float]]
Case = tuple[dict[str, Any], Callable[..., Ranked], dict[str, Any]]
#: Weights that sum to 1.
SHARES = {2: [0.75, 0.25], 3: [0.5, 0.375, 0.125]}
WEIGHTS = {2: [0.75, 0.5], 3: [2.0, 1.0, 0.5]}


def about(system: str, version: str, page: str) -> dict[str, str]:
    return {"system": system, "version": version, "made by": "its documented formula", "source": page}


def added(parts: Iterable[tuple[int, float]]) -> Ranked:
    """Scores added up by document; higher first, then lower id."""
    total: dict[int, float] = {}
    for i, score in parts:
        total[i] = total.get(i, 0.0) + score
    return sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))


def reciprocal(constant: float, first: int) -> Callable[..., Ranked]:
    """sum w / (constant + rank), ranks from `first`."""

    def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
        used = weights or [1.0] * len(lists)
        return added(
            (i, weight / (constant + rank))
            for ranked, weight in zip(lists, used, strict=True)
            for rank, (i, _) in enumerate(ranked, start=first)
        )

    return fuse


def weighted(scale: Callable[[list[float]], list[float]], *, mean: bool = False) -> Callable[..., Ranked]:
    """sum w scale(s), or that over sum w of all lists."""

    def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
        used = weights or [1.0] * len(lists)
        divisor = sum(used) if mean else 1.0
        parts = []
        for ranked, weight in zip(lists, used, strict=True):
            scaled = scale([s for _, s in ranked])
            parts += [(i, weight * s / divisor) for (i, _), s in zip(ranked, scaled, strict=True)]
        return added(parts)

    return fuse


def as_is(scores: list[float]) -> list[float]:
    return scores


def min_max(scores: list[float]) -> list[float]:
    """Equal scores become 1."""
    least, most = min(scores, default=0.0), max(scores, default=0.0)
    return [1.0 if least == most else (s - least) / (most - least) for s in scores]


def min_max_floored(scores: list[float]) -> list[float]:
    """As min_max, with 0.001 for 0."""
    return [s if s > 0 else 0.001 for s in min_max(scores)]


def l2(scores: list[float]) -> list[float]:
    norm = sum(s * s for s in scores) ** 0.5
    return [s / norm if norm else 0.0 for s in scores]


def weaviate() -> tuple[dict[str, str], list[Case]]:
    cases: list[Case] = [
        ({"method": "rrf"}, reciprocal(60.0, 0), {"weights": SHARES}),
        ({"method": "relative_score"}, weighted(min_max), {"weights": SHARES}),
    ]
    return about("weaviate", "1.24 and later", "https://docs.weaviate.io/weaviate/concepts/search/hybrid-search"), cases


def elasticsearch() -> tuple[dict[str, str], list[Case]]:
    cases: list[Case] = [
        ({"method": "rrf"}, reciprocal(60.0, 1), {}),
        ({"method": "rrf"}, reciprocal(60.0, 1), {"weights": WEIGHTS}),
        ({"method": "rrf", "rank_constant": 20}, reciprocal(20.0, 1), {}),
        ({"method": "linear"}, weighted(as_is), {}),
        ({"method": "linear", "calibration": "min_max"}, weighted(min_max), {"weights": WEIGHTS}),
        ({"method": "linear", "calibration": "l2"}, weighted(l2), {"weights": WEIGHTS}),
    ]
    page = "https://www.elastic.co/docs/reference/elasticsearch/rest-apis/retrievers/linear-retriever"
    return about("elasticsearch", "9.2", page), cases


def opensearch() -> tuple[dict[str, str], list[Case]]:
    cases: list[Case] = [
        ({"method": "rrf"}, reciprocal(60.0, 1), {}),
        ({"method": "rrf"}, reciprocal(60.0, 1), {"weights": SHARES}),
        ({"method": "rrf", "rank_constant": 20}, reciprocal(20.0, 1), {}),
        ({"method": "linear"}, weighted(min_max_floored, mean=True), {}),
        ({"method": "linear"}, weighted(min_max_floored, mean=True), {"weights": SHARES}),
        ({"method": "linear", "calibration": "l2"}, weighted(l2, mean=True), {"weights": SHARES}),
    ]
    page = "https://docs.opensearch.org/3.9/search-plugins/search-pipelines/normalization-processor/"
    return about("opensearch", "3.9", page), cases


def milvus() -> tuple[dict[str, str], list[Case]]:
    cases: list[Case] = [
        ({"method": "rrf"}, reciprocal(60.0, 1), {}),
        ({"method": "rrf", "rank_constant": 10}, reciprocal(10.0, 1), {}),
        ({"method": "linear"}, weighted(as_is), {"weights": SHARES}),
    ]
    return about("milvus", "2.6", "https://milvus.io/docs/v2.6.x/reranking.md"), cases


DOCUMENTED = {
    "weaviate": weaviate,
    "elasticsearch": elasticsearch,
    "opensearch": opensearch,
    "milvus": milvus,
}
