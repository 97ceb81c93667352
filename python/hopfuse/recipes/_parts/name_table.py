"""The names of an index's entities as they are compared; a part of an index looks them up in the table of the whole."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.by_object import ByObject
from ...index import Index

Kind = Literal["names", "aliases", "words"]
Entities = Mapping[str, Sequence[int]]


def fold(name: str) -> str:
    """Return a name as it is compared: compatibility-normalised, case-folded, spaces collapsed."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class NameTable(NamedTuple):
    """The entities by their folded names.

    Attributes
    ----------
    names, aliases, words : mapping of str to sequence of int
        The entities that have a name, an alias, or are a word of the texts, ascending.
    place : ndarray of int32, or None
        Of a part of an index: the number of each of these entities in it, -1 if it does not have it.
    """

    names: Entities
    aliases: Entities
    words: Entities
    place: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, index: Index) -> NameTable:
        """Return the table of an index; indexes that are searched by several recipes have one."""
        return _TABLES.get(index)

    def find(self, kind: Kind, key: str) -> Sequence[int]:
        """Return the entities with a folded name, ascending."""
        entities: Sequence[int] = getattr(self, kind).get(key, ())
        if self.place is None or not entities:
            return entities
        own: list[int] = self.place[list(entities)].tolist()
        return [entity for entity in own if entity >= 0]


def _table(index: Index) -> NameTable:
    part, whole = index.part_of, None
    if part is not None and (whole := part.whole()) is not None:
        table = NameTable.of(whole)
        return table._replace(place=part.place(table.place))
    names, aliases, words = (defaultdict[str, list[int]](list) for _ in range(3))
    named = index.num_entities if index.words is None else index.words.first
    for entity, name in enumerate(index.entity_names):
        (names if entity < named else words)[fold(name)].append(entity)
    for entity, others in enumerate(index.entity_aliases):
        for alias in others:
            if entity not in aliases[fold(alias)]:
                aliases[fold(alias)].append(entity)
    return NameTable(dict(names), dict(aliases), dict(words))


_TABLES: ByObject[Index, NameTable] = ByObject(_table)
