"""Weighted seeds from the entities that questions mention, by the names of the index."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import exp
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import RowNumbers
from ...encoders import Encoder
from ...index import Index
from ...index.numbers import Entity, EntityTable, entity_numbers, family_of
from ...ops.dense import dense_topk
from ...types import Corpus, Incidence, Seeds
from ...types.derived import Continued
from .mentions import Mention

_Kind = Literal["names", "aliases", "words"]


def fold(name: str) -> str:
    """Return a name as it is compared: compatibility-normalised, case-folded, spaces collapsed."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class _Names(EntityTable):
    """The numbers of entities by their folded names: those with a name, with an alias, and words of the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.names, self.aliases, self.words = (defaultdict[str, list[int]](list) for _ in range(3))

    def _add(self, entities: list[Entity]) -> None:
        for number, name, aliases, is_word in entities:
            (self.words if is_word else self.names)[fold(name)].append(number)
            for alias in dict.fromkeys(map(fold, aliases)):
                self.aliases[alias].append(number)


class _NameTable(NamedTuple):
    """The entities of an index by their folded names: those of all its states, and the rows that these have in it."""

    every: _Names
    numbers: RowNumbers

    @classmethod
    def of(cls, index: Index) -> _NameTable:
        """Return the table of an index; indexes that are searched by several recipes have one."""
        return _TABLES.get(index)

    def find(self, kind: _Kind, key: str) -> Sequence[int]:
        """Return the entities with a folded name, ascending."""
        entities: dict[str, list[int]] = getattr(self.every, kind)
        return sorted(self.numbers.of(entities.get(key, ())))


def _table(index: Index) -> _NameTable:
    part, whole = index.part_of, None
    if part is not None and (whole := part.whole()) is not None:
        table = _NameTable.of(whole)
        return table._replace(numbers=part.numbers(table.numbers))
    numbers = entity_numbers(index)
    return _NameTable(_Names().fill(index, numbers), numbers)


def _table_of_state(index: Index, earlier: Index, table: _NameTable) -> _NameTable | None:
    numbers = entity_numbers(index)
    return _NameTable(table.every, numbers) if table.every.continued(index, numbers, table.numbers) else None


_TABLES: Continued[Index, _NameTable] = Continued(_table, _table_of_state, family_of)


#: Kinds of matches, the strongest last.
STRENGTH = {"nearest": 0, "alias": 1, "exact": 2, "given": 3}
#: The names that a mention may be, in this order, and the kind of match.
_MATCHES: tuple[tuple[str, _Kind], ...] = (("exact", "names"), ("alias", "aliases"), ("exact", "words"))
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
        self._table = _NameTable.of(index)
        self._frequency, words = index.passage_frequency, index.words
        self._first_word = index.num_entities if words is None else words.first
        self._passages = _EntityPassages(index)
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
                weights[query] |= _shared(names, _likeness({seed.entity: next(cosines) for seed in names}))
        else:
            for query, names in shared:
                weights[query] |= _shared(names, {seed.entity: 1.0 for seed in names})
        without = {surface for surface, found in named.items() if not found}
        return [_weighed(row, known) for row, known in zip(rows, weights, strict=True)], without

    def num_aliased(self, surface: str) -> int:
        """Return the number of entities that have an alias."""
        return len(self._table.find("aliases", fold(surface)))

    def _seed(self, entity: int, surface: str, match: str, similarity: float = 1.0) -> Seed:
        return Seed(entity, surface, match, similarity, self._weight(entity))

    def _weight(self, entity: int) -> float:
        assert self._frequency is not None
        often = max(int(self._frequency[entity]), 1)
        return 1.0 / (min(often, COMMON) if entity < self._first_word else often)

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


# ---- Entities that share a name --------------------------------------------------------------------------------------

_SPREAD = 0.05
"""A cosine that is lower by this much counts 1 / e as much."""
_FLOOR = 0.01
"""The smallest factor, also that of an entity without passages."""


class _EntityPassages:
    """The passages of each entity and their vectors, laid out when they are first needed."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @cached_property
    def corpus(self) -> Corpus | None:
        """The vectors of the passages, compared by cosine; None without vectors or a graph."""
        corpus = self._index.corpus
        return None if corpus is None or self._index.graph is None else corpus.with_metric("cosine")

    @cached_property
    def _passages(self) -> Incidence:
        graph = self._index.graph
        assert graph is not None
        return Incidence.from_graph(graph, self._index.num_passages).transposed()

    def rows(self, entity: int) -> NDArray[np.int32]:
        """Return the passages of an entity."""
        rows, node = self._passages, self._index.num_passages + entity
        return rows.indices[rows.indptr[node] : rows.indptr[node + 1]]


def _likeness(cosines: Mapping[int, float]) -> dict[int, float]:
    """Return a factor for each entity of one name: max(exp((cosine - largest) / ``_SPREAD``), ``_FLOOR``).

    ``cosines``: of each entity, that of its best passage and the question; -inf for an entity without passages. If no
    entity has passages, all factors are 1.
    """
    best = max(cosines.values())
    if best == -np.inf:
        return dict.fromkeys(cosines, 1.0)
    return {entity: max(_FLOOR, exp((cosine - best) / _SPREAD)) for entity, cosine in cosines.items()}
