"""The last step of a policy: a pool of passages by its projected scores and a few small terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..index import Index
from ..types import Hits
from ..types.hits import PAD_ID, PAD_SCORE
from ._fact_gate import Verdict
from ._policy_graph import PolicyGraph
from .policy import Policy

TERMS = ("title", "coverage", "path", "hub")


@dataclass(frozen=True, eq=False)
class Reranked:
    """A ranking, and what each score is made of: for each term its phi, (B, pool) beside ``pool``."""

    hits: Hits
    pool: Hits
    terms: dict[str, NDArray[np.float64]]


class Reranker:
    """S = u / max(u) + title * phi_title + coverage * phi_cov + path * phi_path - hub * phi_hub."""

    def __init__(self, index: Index, policy: Policy, prepared: PolicyGraph) -> None:
        rules = policy.reranking
        self._index, self._prepared, self._titles = index, prepared, dict[int, frozenset[str]]()
        on = policy.switches.reranking
        signed = (rules.title, rules.coverage, rules.path, -rules.hub)
        self.weights = dict(zip(TERMS, signed if on else (0.0,) * 4, strict=True))

    def rank(
        self,
        queries: Sequence[str],
        pool: Hits,
        seeds: Sequence[Mapping[int, float]],
        kept: Sequence[Sequence[Verdict]],
        k: int,
    ) -> Reranked:
        """The k best of each question's pool; ``seeds``: entities and their mass."""
        held = np.arange(pool.ids.shape[1]) < pool.counts[:, None]
        largest = np.where(pool.counts > 0, pool.scores[:, 0], 1.0) if pool.ids.shape[1] else np.ones(len(pool))
        total = np.where(held, pool.scores, 0.0).astype(np.float64) / largest[:, None]
        terms = {name: np.zeros(pool.ids.shape) for name in TERMS}
        for b, row in enumerate(kept):
            ids = pool.ids[b, : pool.counts[b]]
            for name, values in self._terms(queries[b], ids, seeds[b], row).items():
                terms[name][b, : ids.size] = values
        for name, values in terms.items():
            total += self.weights[name] * values
        return Reranked(_best(pool, held, total.astype(np.float32), k), pool, terms)

    def _terms(
        self, query: str, ids: NDArray[np.int64], seeds: Mapping[int, float], kept: Sequence[Verdict]
    ) -> dict[str, NDArray[np.float64]]:
        """Each phi of a question's passages; those without weight stay 0."""
        found: dict[str, NDArray[np.float64]] = {}
        if self.weights["title"] > 0:
            named = _words(" ".join([query, *(self._text(fact) for fact in kept)]))
            found["title"] = np.array([self._share(passage, named) for passage in ids.tolist()], np.float64)
        if self.weights["coverage"] > 0:
            found["coverage"] = _shares(ids, [(self._prepared.passages_of(e), mass) for e, mass in seeds.items()])
        if self.weights["path"] > 0 and self._index.facts is not None:
            facts = self._index.facts
            stated = [(facts.passages[slice(*facts.indptr[f.fact : f.fact + 2])], f.score) for f in kept]
            found["path"] = _shares(ids, stated)
        if self.weights["hub"] < 0:
            found["hub"] = self._prepared.hubs[ids]
        return found

    def _text(self, fact: Verdict) -> str:
        names = self._index.entity_names
        return f"{names[fact.head]} {fact.relation} {names[fact.tail]}"

    def _share(self, passage: int, named: frozenset[str]) -> float:
        """The share of a title's words that are named."""
        if passage not in self._titles:
            self._titles[passage] = _words(self._index.titles[passage])
        title = self._titles[passage]
        return len(title & named) / len(title) if title else 0.0


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def _shares(ids: NDArray[np.int64], parts: Sequence[tuple[NDArray[Any], float]]) -> NDArray[np.float64]:
    """For each passage, the share of the parts' weight whose passages it is among."""
    total = sum(weight for _, weight in parts)
    shares = np.zeros(ids.size)
    for passages, weight in parts:
        shares += weight * np.isin(ids, passages)
    return shares / total if total > 0 else shares


def _best(pool: Hits, held: NDArray[np.bool_], scores: NDArray[np.float32], k: int) -> Hits:
    """Higher score first, then lower id."""
    order = np.lexsort((pool.ids, -scores, ~held))[:, :k]
    kept = np.take_along_axis(held, order, axis=1)
    ids = np.where(kept, np.take_along_axis(pool.ids, order, axis=1), PAD_ID)
    values = np.where(kept, np.take_along_axis(scores, order, axis=1), np.float32(PAD_SCORE))
    return Hits._trusted(*_padded(ids, values, k), np.minimum(pool.counts, k))


def _padded(
    ids: NDArray[np.int64], values: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    missing = ((0, 0), (0, k - ids.shape[1]))
    return np.pad(ids, missing, constant_values=PAD_ID), np.pad(values, missing, constant_values=PAD_SCORE)
