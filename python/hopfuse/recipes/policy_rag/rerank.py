"""The re-ranking of passages by their projected scores and a few additional terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of
from ...types import Facts, Hits
from .._parts.hits import widened
from .gate import GateDecision
from .graph import PolicyGraph


@dataclass(frozen=True, eq=False)
class RerankedHits:
    """A ranking, the pool it was made from, and the value phi of each term for the passages of the pool, (B, pool)."""

    hits: Hits
    pool: Hits
    terms: dict[str, NDArray[np.float64]]


class PolicyReranker:
    """S = u / max(u) + title * phi_title + coverage * phi_cov + path * phi_path - hub * phi_hub."""

    def __init__(
        self, weights: Mapping[str, float], titles: Sequence[str], names: Sequence[str], facts: Facts | None
    ) -> None:
        self._weights, self._titles, self._names, self._facts = weights, _Titles(titles), names, facts

    def rank(
        self,
        graph: PolicyGraph,
        queries: Sequence[str],
        pool: Hits,
        seeds: Sequence[Mapping[int, float]],
        kept: Sequence[Sequence[GateDecision]],
        k: int,
    ) -> RerankedHits:
        """Return the k best of each question's pool; ``seeds`` maps entities to their mass."""
        held = np.arange(pool.ids.shape[1]) < pool.counts[:, None]
        largest = np.where(pool.counts > 0, pool.scores[:, 0], 1.0) if pool.ids.shape[1] else np.ones(len(pool))
        total = np.where(held, pool.scores, 0.0).astype(np.float64) / largest[:, None]
        terms = {name: np.zeros(pool.ids.shape) for name in self._weights}
        for b, row in enumerate(kept):
            ids = pool.ids[b, : pool.counts[b]]
            for name, values in self._terms(graph, queries[b], ids, seeds[b], row).items():
                terms[name][b, : ids.size] = values
        for name, values in terms.items():
            total += self._weights[name] * values
        return RerankedHits(widened(Hits(pool.ids, total, pool.counts), k), pool, terms)

    def _terms(
        self,
        graph: PolicyGraph,
        query: str,
        ids: NDArray[np.int64],
        seeds: Mapping[int, float],
        kept: Sequence[GateDecision],
    ) -> dict[str, NDArray[np.float64]]:
        """Return phi of each term with a weight, for a question's passages."""
        found: dict[str, NDArray[np.float64]] = {}
        if self._weights["title"] > 0:
            found["title"] = self._titles.shares(ids, " ".join([query, *(self._text(fact) for fact in kept)]))
        if self._weights["coverage"] > 0:
            held = [(graph.passages_of(entity), mass) for entity, mass in seeds.items()]
            found["coverage"] = _shares(ids, held, graph.num_passages)
        if self._weights["path"] > 0 and self._facts is not None:
            facts = self._facts
            stated = [(facts.passages[slice(*facts.indptr[f.fact : f.fact + 2])], f.score) for f in kept]
            found["path"] = _shares(ids, stated, graph.num_passages)
        if self._weights["hub"] < 0:
            found["hub"] = graph.hubs[ids]
        return found

    def _text(self, fact: GateDecision) -> str:
        return f"{self._names[fact.head]} {fact.relation} {self._names[fact.tail]}"


class _Titles:
    """The words of each passage's title, as numbers."""

    def __init__(self, titles: Sequence[str]) -> None:
        rows = [sorted(_words(title)) for title in titles]
        self._number = {word: at for at, word in enumerate(dict.fromkeys(word for row in rows for word in row))}
        self._indptr = np.cumsum([0, *map(len, rows)])
        self._words = np.array([self._number[word] for row in rows for word in row], np.int64)

    def shares(self, ids: NDArray[np.int64], text: str) -> NDArray[np.float64]:
        """Return the share of each title's words that a text contains; 0 without a title."""
        named = np.zeros(len(self._number) + 1, bool)
        named[[self._number[word] for word in _words(text) if word in self._number]] = True
        words, count = entries_of(self._indptr, self._words, ids)
        hits = np.bincount(np.repeat(np.arange(ids.size), count), named[words], ids.size)
        return np.asarray(hits / np.maximum(count, 1), np.float64)


def _shares(
    ids: NDArray[np.int64], parts: Sequence[tuple[NDArray[Any], float]], num_passages: int
) -> NDArray[np.float64]:
    """Return, for each passage, its parts' share of the total weight; a part is (passages, weight)."""
    weights = np.zeros(num_passages)
    for passages, weight in parts:
        weights[passages] += weight
    total = sum(weight for _, weight in parts)
    return weights[ids] / total if total > 0 else np.zeros(ids.size)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
