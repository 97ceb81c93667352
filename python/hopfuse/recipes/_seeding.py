"""From entity mentions to weighted seeds, for recipes that start a walk at entities."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..index import Index
from ..ops.dense import dense_topk
from ..types import Corpus


class TextEncoder(Protocol):
    """What the seeder asks of an encoder."""

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]: ...


class Seed(NamedTuple):
    """Why an entity is a seed: the mention, how it was matched, and the weight 1 / passage frequency."""

    entity: int
    surface: str
    match: str
    similarity: float
    weight: float


def fold(name: str) -> str:
    """Names match where this is equal: compatibility-normalised, case-folded, spaces collapsed."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _cosine_corpus(index: Index) -> Corpus | None:
    """Entity vectors to compare by cosine, whatever metric the passages have."""
    corpus = index.entity_corpus
    return None if corpus is None else corpus.with_metric("cosine")


class EntitySeeder:
    """Finds the entities that mentions name: exactly, by alias, else the nearest by embedding.

    Entities of one name are all seeds. A seed weighs 1 / (number of passages the entity is in), so a rare
    entity counts for more than a hub.
    """

    def __init__(self, index: Index, encoder: TextEncoder | None, threshold: float) -> None:
        self._names: dict[str, list[int]] = defaultdict(list)
        self._aliases: dict[str, list[int]] = defaultdict(list)
        for entity, name in enumerate(index.entity_names):
            self._names[fold(name)].append(entity)
        for entity, aliases in enumerate(index.entity_aliases):
            for alias in aliases:
                if entity not in self._aliases[fold(alias)]:
                    self._aliases[fold(alias)].append(entity)
        frequency = index.passage_frequency
        self._weight = np.zeros(0) if frequency is None else 1.0 / np.maximum(frequency, 1)
        self._corpus = _cosine_corpus(index) if encoder is not None else None
        self._encoder = encoder
        self._threshold = threshold

    def seeds(self, mentions: Sequence[Sequence[Any]], threads: int | None) -> list[list[Seed]]:
        """Seeds of each query from its mentions: names, or entity numbers; an entity seeds a query once."""
        unmatched = dict.fromkeys(
            m for row in mentions for m in row if isinstance(m, str) and fold(m) and not self._lookup(m)[1]
        )
        nearest = self._nearest(list(unmatched), threads)
        rows = []
        for query, row in enumerate(mentions):
            found: dict[int, Seed] = {}
            for mention in row:
                for seed in self._matches(query, mention, nearest):
                    found.setdefault(seed.entity, seed)
            rows.append(list(found.values()))
        return rows

    def _lookup(self, surface: str) -> tuple[str, list[int]]:
        key = fold(surface)
        if key in self._names:
            return "exact", self._names[key]
        return "alias", self._aliases.get(key, [])

    def _matches(self, query: int, mention: Any, nearest: dict[str, tuple[int, float]]) -> list[Seed]:
        if isinstance(mention, str):
            match, entities = self._lookup(mention)
            if not entities and mention in nearest:
                entity, similarity = nearest[mention]
                return [Seed(entity, mention, "nearest", similarity, float(self._weight[entity]))]
            return [Seed(e, mention, match, 1.0, float(self._weight[e])) for e in entities]
        if isinstance(mention, bool) or not isinstance(mention, int | np.integer):
            raise InputError(f"query {query} mentions {mention!r}; a mention is a name (str) or an entity number (int)")
        if not 0 <= mention < self._weight.size:
            raise InputError(f"query {query} mentions entity {mention}; entities are 0 .. {self._weight.size - 1}")
        return [Seed(int(mention), "", "given", 1.0, float(self._weight[mention]))]

    def _nearest(self, surfaces: list[str], threads: int | None) -> dict[str, tuple[int, float]]:
        if not surfaces or self._encoder is None or self._corpus is None:
            return {}
        hits = dense_topk(self._encoder.encode_queries(surfaces), self._corpus, 1, threads=threads)
        best = zip(surfaces, hits.ids[:, 0], hits.scores[:, 0], strict=True)
        return {s: (int(e), float(score)) for s, e, score in best if e >= 0 and score >= self._threshold}
