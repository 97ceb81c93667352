"""Weighted seeds from the entities that questions mention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...encoders import Encoder
from ...index import Index
from ...ops.dense import dense_topk
from ...types import Seeds
from .likeness import EntityPassages, likeness
from .mentions import Mention
from .name_table import Kind, NameTable, fold

#: Kinds of matches, the strongest last.
STRENGTH = {"nearest": 0, "alias": 1, "exact": 2, "given": 3}
#: The names that a mention may be, in this order, and the kind of match.
_MATCHES: tuple[tuple[str, Kind], ...] = (("exact", "names"), ("alias", "aliases"), ("exact", "words"))
#: The number of passages from which on an entity's weight as a seed stays the same, unless it is a word of the texts.
COMMON = 30
#: The confidence below which a mention may not outweigh the others.
SURE = 0.5
#: The factor of an entity that has a name only as an alias, where it is the own name of another.
ALIAS = 0.05
#: What all but the likeliest of the entities of a name weigh together at least, as a part of the likeliest.
OTHERS = 0.15
#: The smallest width of a row of seeds. Few widths need few recordings.
MIN_SEED_WIDTH = 8


class Seed(NamedTuple):
    """An entity that a walk starts from: the mention, the kind of match, its similarity, weight and confidence."""

    entity: int
    surface: str
    match: str
    similarity: float
    weight: float
    confidence: float = 1.0


class EntitySeeder:
    """Find the entities that mentions name: by their exact name, else by an alias, else the nearest by vector.

    If several entities have a name, all of them are seeds. The weight of a seed is 1 / (number of passages that contain
    the entity), and at least 1 / ``COMMON`` unless the entity is a word of the texts: rare entities count for more
    than hubs, but not a hundred times as much. The weight of a matcher's mention is multiplied by its confidence; below
    a confidence of ``SURE`` it is at most that of the lightest confident mention. Of several entities of one name,
    those count for more whose passages are similar to the question and whose own name it is: the likeliest has the
    weight that it would have alone, each of the others a part of that, so that a rare namesake does not outweigh it.
    """

    def __init__(self, index: Index, encoder: Encoder | None, threshold: float) -> None:
        self._table = NameTable.of(index)
        named = index.num_entities if index.words is None else index.words.first
        frequency, most = index.passage_frequency, np.where(np.arange(index.num_entities) < named, COMMON, np.inf)
        self._weight = np.zeros(0) if frequency is None else 1.0 / np.minimum(np.maximum(frequency, 1), most)
        self._passages = EntityPassages(index)
        corpus = index.entity_corpus if encoder is not None else None
        self._corpus = None if corpus is None else corpus.with_metric("cosine")
        self._encoder = encoder
        self._threshold = threshold

    def seeds(
        self,
        mentions: Sequence[Sequence[Any]],
        vectors: NDArray[Any] | None = None,
        *,
        backend: str,
        threads: int | None,
    ) -> tuple[list[list[Seed]], set[str]]:
        """Return the seeds of each question, each entity once, by its strongest match; and the names of no entity.

        Parameters
        ----------
        mentions : sequence of B sequences of str, int, Mention or None
            None stands for an entity that is not there.
        vectors : ndarray (B, d), optional
            Vectors of the questions, in the passages' space. Without them, entities of one name weigh the same.
        backend, threads
        """
        run: dict[str, Any] = {"backend": backend, "threads": threads}
        named = {mention: self._named(mention) for row in mentions for mention in row if isinstance(mention, str)}
        unknown = [surface for surface, seeds in named.items() if not seeds and fold(surface)]
        if unknown and self._encoder is not None and self._corpus is not None and len(self._corpus):
            nearest = dense_topk(self._encoder.encode_queries(unknown), self._corpus, 1, **run)
            for surface, hit in zip(unknown, map(nearest.row, range(len(unknown))), strict=True):
                entity, similarity = hit[0]
                if similarity >= self._threshold:
                    named[surface] = [self._seed(entity, surface, "nearest", similarity)]
        rows = [self._strongest(row, named) for row in mentions]

        weights: list[dict[int, float]] = [{} for _ in rows]
        shared = [(query, names) for query, row in enumerate(rows) for names in _namesakes(row, mentions[query])]
        if shared and vectors is not None and self._passages.corpus is not None:
            asked = [(query, seed.entity) for query, names in shared for seed in names]
            allow = [self._passages.rows(entity) for _, entity in asked]
            best = dense_topk(vectors[[query for query, _ in asked]], self._passages.corpus, 1, allow=allow, **run)
            cosines = iter(best.scores[:, 0].tolist())  # -inf for an entity without passages
            for query, names in shared:
                weights[query] |= _shared(names, likeness({seed.entity: next(cosines) for seed in names}))
        else:
            for query, names in shared:
                weights[query] |= _shared(names, {seed.entity: 1.0 for seed in names})
        without = {surface for surface, found in named.items() if not found}
        return [_weighed(row, known) for row, known in zip(rows, weights, strict=True)], without

    def num_aliased(self, surface: str) -> int:
        """Return the number of entities that have an alias."""
        return len(self._table.find("aliases", fold(surface)))

    def _seed(self, entity: int, surface: str, match: str, similarity: float = 1.0) -> Seed:
        return Seed(entity, surface, match, similarity, float(self._weight[entity]))

    def _named(self, surface: str) -> list[Seed]:
        """Return the entities with this name; if there is none, those with this alias, else with this word."""
        key = fold(surface)
        for match, kind in _MATCHES:
            if found := self._table.find(kind, key):
                return [self._seed(entity, surface, match) for entity in found]
        return []

    def _strongest(self, mentions: Sequence[Any], named: Mapping[str, list[Seed]]) -> list[Seed]:
        """Return the seeds of a question, each entity by its strongest match."""
        found: dict[int, Seed] = {}
        for mention in mentions:
            for seed in named[mention] if isinstance(mention, str) else self._given(mention):
                known = found.setdefault(seed.entity, seed)
                if (seed.confidence, STRENGTH[seed.match]) > (known.confidence, STRENGTH[known.match]):
                    found[seed.entity] = seed
        return list(found.values())

    def _given(self, mention: Mention | int | None) -> list[Seed]:
        """Return the seed of an entity number or of a matcher's mention."""
        if mention is None:
            return []
        if isinstance(mention, int):
            return [self._seed(mention, "", "given")]
        return [self._seed(mention.entity, mention.surface, mention.kind)._replace(confidence=mention.confidence)]


def _namesakes(row: list[Seed], mentions: Sequence[Any]) -> list[tuple[Seed, ...]]:
    """Return the seeds of each name that a matcher found and several entities have."""
    if not any(isinstance(mention, Mention) for mention in mentions):
        return []
    found = defaultdict[str, list[Seed]](list)
    for seed in row:
        if seed.match in ("exact", "alias"):
            found[seed.surface].append(seed)
    return [tuple(seeds) for seeds in found.values() if len(seeds) > 1]


def _shared(names: Sequence[Seed], like: Mapping[int, float]) -> dict[int, float]:
    """Return the weights of the entities of one name, relative to the likeliest one, which keeps its own."""
    owned = any(seed.match == "exact" for seed in names)
    factor = {s.entity: like[s.entity] * (ALIAS if owned and s.match == "alias" else 1.0) for s in names}
    first = max(names, key=lambda seed: (factor[seed.entity], -seed.entity))
    parts = {entity: max(own / factor[first.entity], OTHERS / (len(names) - 1)) for entity, own in factor.items()}
    return {entity: first.weight * part for entity, part in parts.items()}


def _weighed(row: list[Seed], shared: Mapping[int, float]) -> list[Seed]:
    """Return seeds whose weights are those shared with entities of one name, and multiplied by their confidence."""
    if not shared and all(seed.confidence == 1 for seed in row):
        return row
    most = min((seed.weight for seed in row if seed.confidence >= SURE), default=np.inf)
    weighed = []
    for seed in row:
        weight = shared.get(seed.entity, seed.weight)
        weight = weight if seed.confidence >= SURE else min(weight, most)
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


def padded(seeds: list[list[Seed]], num_passages: int) -> Seeds:
    """Return entity seeds as nodes of the graph, in rows whose width is a power of two."""
    rows = [{num_passages + s.entity: s.weight for s in row} for row in seeds]
    return Seeds.from_rows(rows, seed_width(max(map(len, rows), default=0)))


def seed_width(seeds: int) -> int:
    """Return the width of a row for this number of seeds: a power of two."""
    return max(MIN_SEED_WIDTH, 1 << max(0, seeds - 1).bit_length())
