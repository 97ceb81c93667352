"""The names of an index's entities as they are compared; a part of an index looks them up in the table of the whole."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ..._arrays.rows import PartNumbers
from ...index import Index
from ...types.derived import ByObject

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
    numbers : PartNumbers or None
        Of a part of an index: the numbers of these entities in it.
    """

    names: Entities
    aliases: Entities
    words: Entities
    numbers: PartNumbers | None = None

    @classmethod
    def of(cls, index: Index) -> NameTable:
        """Return the table of an index; indexes that are searched by several recipes have one."""
        return _TABLES.get(index)

    def find(self, kind: Kind, key: str) -> Sequence[int]:
        """Return the entities with a folded name, ascending."""
        entities: Sequence[int] = getattr(self, kind).get(key, ())
        return entities if self.numbers is None else self.numbers.of(entities)


def _table(index: Index) -> NameTable:
    part, whole = index.part_of, None
    if part is not None and (whole := part.whole()) is not None:
        table = NameTable.of(whole)
        return table._replace(numbers=part.numbers(table.numbers))
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
