"""Weighted seeds from the entities that questions mention."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...encoders import Encoder
from ...errors import InputError
from ...index import Index
from ...ops.dense import dense_topk
from ...types import Corpus
from .likeness import PassageLikeness
from .mentions import Mention


class Seed(NamedTuple):
    """An entity that a walk starts at: the mention, how it was matched, how sure that is, and the weight."""

    entity: int
    surface: str
    match: str
    similarity: float
    weight: float
    confidence: float = 1.0


def fold(name: str) -> str:
    """Return a name as it is compared: compatibility-normalised, case-folded, spaces collapsed."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _cosine_corpus(index: Index) -> Corpus | None:
    """Return the entities' vectors to compare by cosine, whatever metric the passages have."""
    corpus = index.entity_corpus
    return None if corpus is None else corpus.with_metric("cosine")


STRENGTH = {"nearest": 0, "alias": 1, "exact": 2, "given": 3}
#: Passages of an entity above which more make no difference to its weight as a seed, unless it is a word of the texts.
COMMON = 30
#: A mention below is in doubt: it may not outweigh one that is not.
SURE = 0.5
#: What a name of several entities is worth to one of which it is an alias; 1 to one whose own name it is.
ALIAS = 0.25


class EntitySeeder:
    """Find the entities that mentions name: exactly, by alias, else the nearest by embedding.

    Entities of one name are all seeds. A seed weighs 1 / (number of passages the entity is in), but at least
    1 / ``COMMON`` (a word of the texts may weigh less): a rare entity counts for more than a hub, and not for a hundred
    times as much. What a matcher finds
    weighs as much less as it is less sure, and one that is in doubt no more than any that is sure; of several
    entities of one name, those count more whose passages are like the question and whose own name it is.
    """

    def __init__(self, index: Index, encoder: Encoder | None, threshold: float) -> None:
        self._names: dict[str, list[int]] = defaultdict(list)
        self._aliases: dict[str, list[int]] = defaultdict(list)
        self._words: dict[str, list[int]] = defaultdict(list)
        named = index.num_entities if index.words is None else index.words.first
        for entity, name in enumerate(index.entity_names):
            (self._names if entity < named else self._words)[fold(name)].append(entity)
        for entity, aliases in enumerate(index.entity_aliases):
            for alias in aliases:
                if entity not in self._aliases[fold(alias)]:
                    self._aliases[fold(alias)].append(entity)
        frequency = index.passage_frequency
        self._most = np.where(np.arange(index.num_entities) < named, COMMON, np.inf)
        self._weight = np.zeros(0) if frequency is None else self._specificity(frequency)
        self._likeness = PassageLikeness(index)
        self._corpus = _cosine_corpus(index) if encoder is not None else None
        self._encoder = encoder
        self._threshold = threshold

    def seeds(
        self,
        mentions: Sequence[Sequence[Any]],
        threads: int | None,
        vectors: NDArray[Any] | None = None,
    ) -> list[list[Seed]]:
        """Return the seeds of each query, by its mentions: names, entity numbers, or a matcher's.

        ``vectors`` (B, d) are the questions', in the passages' space; without them entities of one name weigh the same.

        An entity seeds a query once, by its strongest match.
        """
        named = {mention: self._named(mention) for row in mentions for mention in row if isinstance(mention, str)}
        unmatched = [surface for surface, seeds in named.items() if not seeds and fold(surface)]
        for surface, (entity, similarity) in self._nearest(unmatched, threads).items():
            named[surface].append(Seed(entity, surface, "nearest", similarity, float(self._weight[entity])))
        rows = []
        for query, row in enumerate(mentions):
            found: dict[int, Seed] = {}
            for mention in row:
                matches = named[mention] if isinstance(mention, str) else [self._given(query, mention)]
                for seed in matches:
                    known = found.setdefault(seed.entity, seed)
                    if (seed.confidence, STRENGTH[seed.match]) > (known.confidence, STRENGTH[known.match]):
                        found[seed.entity] = seed
            rows.append(list(found.values()))
        shared = [(query, names) for query, found in enumerate(rows) for names in _namesakes(found, mentions[query])]
        likeness: list[dict[int, float]] = [{} for _ in rows]
        for (query, _), like in zip(shared, self._likeness.of(shared, vectors, threads), strict=True):
            likeness[query] |= like
        return [_weighed(row, like) for row, like in zip(rows, likeness, strict=True)]

    def num_aliased(self, surface: str) -> int:
        """Return how many entities a text is an alias of."""
        return len(self._aliases.get(fold(surface), ()))

    def _specificity(self, frequency: NDArray[Any]) -> NDArray[np.float64]:
        """Return how much entities say that are in so many passages each, shape (..., E)."""
        return np.asarray(1.0 / np.minimum(np.maximum(frequency, 1), self._most))

    def _named(self, surface: str) -> list[Seed]:
        """Return the entities of a name; where there is none, those of that alias, else of that word."""
        key = fold(surface)
        for match, known in (("exact", self._names), ("alias", self._aliases), ("exact", self._words)):
            if known.get(key):
                return [Seed(e, surface, match, 1.0, float(self._weight[e])) for e in known[key]]
        return []

    def _given(self, query: int, mention: Any) -> Seed:
        """Return the entity of a number, or of a matcher's mention."""
        if isinstance(mention, Mention):
            seed = self._given(query, mention.entity)
            return seed._replace(surface=mention.surface, match=mention.kind, confidence=mention.confidence)
        if isinstance(mention, bool) or not isinstance(mention, int | np.integer):
            raise InputError(f"query {query} mentions {mention!r}; a mention is a name (str) or an entity number (int)")
        if not 0 <= mention < self._weight.size:
            raise InputError(f"query {query} mentions entity {mention}; entities are 0 .. {self._weight.size - 1}")
        return Seed(int(mention), "", "given", 1.0, float(self._weight[mention]))

    def _nearest(self, surfaces: list[str], threads: int | None) -> dict[str, tuple[int, float]]:
        """Return the nearest entity for each surface that no name matches."""
        if not surfaces or self._encoder is None or self._corpus is None or len(self._corpus) == 0:
            return {}
        hits = dense_topk(self._encoder.encode_queries(surfaces), self._corpus, 1, threads=threads)
        best = zip(surfaces, hits.ids[:, 0], hits.scores[:, 0], strict=True)
        return {surface: (int(e), float(score)) for surface, e, score in best if e >= 0 and score >= self._threshold}


def _namesakes(row: list[Seed], mentions: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the entities, for each name of several that a matcher found."""
    if not any(isinstance(mention, Mention) for mention in mentions):
        return []
    found = defaultdict[str, list[int]](list)
    for seed in row:
        if seed.match in ("exact", "alias"):
            found[seed.surface].append(seed.entity)
    return [tuple(entities) for entities in found.values() if len(entities) > 1]


def _weighed(row: list[Seed], likeness: Mapping[int, float]) -> list[Seed]:
    """Return seeds with their weights times how sure they are and, of one name, how like the question.

    One in doubt weighs at most what the least sure one does.
    """
    if not likeness and all(seed.confidence == 1 for seed in row):
        return row
    most = min((seed.weight for seed in row if seed.confidence >= SURE), default=np.inf)
    weighed = []
    for seed in row:
        weight = seed.weight if seed.confidence >= SURE else min(seed.weight, most)
        if seed.entity in likeness:
            weight *= likeness[seed.entity] * (ALIAS if seed.match == "alias" else 1.0)
        weighed.append(seed._replace(weight=weight * seed.confidence))
    return weighed


def seed_trace(index: Index, seed: Seed) -> dict[str, Any]:
    """Return a seed as plain data."""
    name, frequency = index.entity_names[seed.entity], index.passage_frequency
    return {
        "entity": seed.entity,
        "name": name,
        "surface": seed.surface or name,
        "match": seed.match,
        "similarity": seed.similarity,
        "passage_frequency": None if frequency is None else int(frequency[seed.entity]),
        "weight": seed.weight,
    }
