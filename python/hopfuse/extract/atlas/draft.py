"""Collecting entities, passages and facts under readable keys, before they get their node numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from .names import fold


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, the entity it is about and the others it mentions (by key)."""

    title: str
    text: str
    about: str
    mentions: tuple[str, ...]


class Fact(NamedTuple):
    """``subject`` has ``relation`` to ``object`` (two entities by key)."""

    subject: str
    relation: str
    object: str


@dataclass(slots=True)
class Draft:
    """An atlas in the making.

    Attributes
    ----------
    names : dict of str to str
        Display name of each entity, by key; distinct once folded.
    plain : dict of str to str
        The name as a text says it; several entities may share one.
    alternates : dict of str to tuple of str
        Alternate names, each an entity of its own.
    passages : dict of str to Passage
        By passage id.
    facts : list of Fact
    """

    names: dict[str, str] = field(default_factory=dict)
    plain: dict[str, str] = field(default_factory=dict)
    alternates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    passages: dict[str, Passage] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    def entity(self, key: str, plain: str, *qualified: str) -> None:
        """Add an entity under the first of its names that is free; leave it out where none is."""
        for name in (plain, *qualified):
            folded = fold(name)
            if folded not in self._used:
                self._used.add(folded)
                self.names[key], self.plain[key] = name, plain
                return

    def passage(self, id: str, title: str, text: str, about: str, *mentions: str | None) -> None:
        """Add a passage about an entity that is here; mentions of others that are not are left out."""
        if about in self.names:
            known = dict.fromkeys(m for m in mentions if m and m in self.names and m != about)
            self.passages[id] = Passage(title, text, about, tuple(known))

    def fact(self, subject: str, relation: str, *objects: str | None) -> None:
        """Relate an entity to others, as far as they are here."""
        if subject in self.names:
            self.facts += [Fact(subject, relation, o) for o in objects if o and o in self.names and o != subject]

    def shared_names(self) -> frozenset[str]:
        """Folded plain names that more than one entity carries."""
        count = Counter(map(fold, self.plain.values()))
        return frozenset(name for name, n in count.items() if n > 1)
