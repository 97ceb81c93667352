"""What else an entity is called: its aliases, abbreviations, and the names that synonym edges join to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..index import Index

_NUMBER = re.compile(r"\d+")


class OtherName(NamedTuple):
    """A name, the rule that gives it, and how the question must write the entity; "" where any way will do."""

    rule: str
    name: str
    written: str = ""


class OtherNames:
    """Names of entities, and by which rule each is another name of one.

    Parameters
    ----------
    index : Index
    synonyms : float or None
        The least weight of a synonym edge that gives a name; None for aliases alone, without abbreviations.
    """

    def __init__(self, index: Index, synonyms: float | None) -> None:
        from ..extract import canonical_key  # loads the kernels, which other evaluations do without

        self._key = canonical_key
        rows = zip(index.entity_names, index.entity_aliases, strict=True)
        self.called = [[name for name in (own, *others) if name.strip()] for own, others in rows]
        self._owners: dict[str, set[int]] = {}
        for entity, names in enumerate(self.called):
            for name in names:
                self._owners.setdefault(canonical_key(name), set()).add(entity)
        self._further: dict[int, list[OtherName]] = {}
        if synonyms is not None:
            self._add_abbreviations(index)
            self._add_synonyms(index, synonyms)

    def is_own(self, name: str) -> bool:
        """Whether exactly one entity has the name."""
        return len(self._owners.get(self._key(name), ())) == 1

    def of(self, entity: int, surfaces: Sequence[str], taken: set[str]) -> list[OtherName]:
        """What an entity that the question has as ``surfaces`` may be called, but for the names ``taken`` (folded)."""
        own = [OtherName("alias", name) for name in self.called[entity] if self.is_own(name)]
        found: dict[str, OtherName] = {}
        for other in (*own, *self._further.get(entity, ())):
            if self._key(other.name) not in taken and all(surface.endswith(other.written) for surface in surfaces):
                found.setdefault(other.name, other)
        return list(found.values())

    def _add_abbreviations(self, index: Index) -> None:
        """The long form for a short one and back, where the texts explain neither in another way."""
        from ..extract import abbreviations

        pairs = {(self._key(short), self._key(long)): (short, long) for short, long in abbreviations(index.texts)}
        times = Counter(key for pair in pairs for key in pair)
        for (short_key, long_key), (short, long) in pairs.items():
            if times[short_key] == times[long_key] == 1 and sum(map(str.isupper, short)) > 1:
                self._add(short_key, OtherName("abbreviation", long, short))
                self._add(long_key, OtherName("abbreviation", short))

    def _add(self, key: str, other: OtherName) -> None:
        """Another name for the one entity of a name; not one that several entities have."""
        owners = self._owners.get(key, set())
        if len(owners) == 1 and len(self._owners.get(self._key(other.name), ())) <= 1:
            self._further.setdefault(next(iter(owners)), []).append(other)

    def _add_synonyms(self, index: Index, least: float) -> None:
        for one, two in _joined_entities(index, least).tolist():
            for entity, other in ((one, two), (two, one)):
                keys = [self._key(name) for name in self.called[entity]]
                for name in self.called[other][:1]:
                    if self.is_own(name) and all(_says_the_same(key, self._key(name)) for key in keys):
                        self._further.setdefault(entity, []).append(OtherName("synonym", name))


def _joined_entities(index: Index, least: float) -> NDArray[np.int64]:
    """Entities that an edge of the type ``"synonym"`` and of at least this weight joins; (S, 2), each pair once."""
    graph = index.graph
    if graph is None or "synonym" not in graph.edge_type_names:
        return np.zeros((0, 2), np.int64)
    chosen = np.ones(graph.num_stored, bool) if graph.weight is None else graph.weight >= np.float32(least)
    if graph.edge_type is not None:
        chosen &= graph.edge_type == graph.edge_type_names.index("synonym")
    at = np.flatnonzero(chosen)
    into = graph.node_of[np.searchsorted(graph.indptr, at, side="right") - 1].astype(np.int64)
    ends = np.sort(np.stack([into, graph.node_of[graph.indices[at]]], axis=1), axis=1) - index.num_passages
    return np.unique(ends[(ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])], axis=0)


def _says_the_same(one: str, other: str) -> bool:
    """Neither other numbers, as two years have, nor a name that stands in the other, which then says more."""
    same_numbers = sorted(_NUMBER.findall(one)) == sorted(_NUMBER.findall(other))
    return same_numbers and f" {one} " not in f" {other} " and f" {other} " not in f" {one} "
