"""Convert extractions to additions of a change; known names are found by the keys of their spellings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from ..errors import InputError
from .contents import Contents, PassageId
from .names import Names
from .parts.words import WordInfo


class StatedFact(Protocol):
    """A fact that some passages state, such as :class:`hopfuse.extract.Fact`."""

    @property
    def head(self) -> int:
        """An entity."""
        ...

    @property
    def relation(self) -> str:
        """The relation as written."""
        ...

    @property
    def tail(self) -> int:
        """An entity."""
        ...

    @property
    def passages(self) -> tuple[int, ...]:
        """Rows of the passages that state it."""
        ...


class ReadPassages(Protocol):
    """Passages and what was read in them, such as :class:`hopfuse.extract.Memory`."""

    @property
    def ids(self) -> tuple[PassageId, ...]:
        """P ids."""
        ...

    @property
    def entities(self) -> tuple[str, ...]:
        """E entities: names first, then words."""
        ...

    @property
    def num_names(self) -> int:
        """Number of entities that are names."""
        ...

    @property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        """Other spellings of each entity."""
        ...

    @property
    def facts(self) -> Sequence[StatedFact]:
        """Distinct facts."""
        ...

    @property
    def words(self) -> WordInfo | None:
        """How words were read, or None if there are none."""
        ...

    def keys(self, words: Sequence[str]) -> list[str]:
        """Return the keys of words; forms of the same word have the same key."""
        ...

    def stated_edges(self) -> Iterable[tuple[int, int, str, int]]:
        """Yield edges of weight 1: two nodes, a type, and the row of the passage that states it, or -1."""
        ...


class Additions(NamedTuple):
    """Additions by slots; the end of an edge is the slot of a passage, or -1 minus the slot of an entity."""

    aliases: list[tuple[int, str]]
    edges: list[tuple[int, int, str, float, int]]  # ends, type, weight, the passage that states it or -1
    facts: list[tuple[int, str, int, int]]  # head, relation, tail, passage


def check_read(base: Contents, read: Any) -> None:
    """Refuse passages that were read differently from the index's, and parts that the index lacks.

    Raises
    ------
    InputError
    """
    check_has(base.graph, "a graph", "memory")
    check_has(base.facts if read.facts else (), "facts", "memory")
    ours, theirs = (None if words is None else replace(words, first=0) for words in (base.words, read.words))
    if ours != theirs and read.ids:
        raise InputError(
            "conflict",
            "memory",
            "the words of these passages were read {given}, those of the index {allowed}; read them with {reader}",
            given=_manner(theirs),
            allowed=_manner(ours),
            reader="WordReader.like(index.words)" if ours else "a reader that reads no words",
        )


def check_has(part: Any, name: str, field: str) -> None:
    """Refuse additions to a part that the index does not have; ``name`` has an article if it needs one."""
    if part is None:
        raise InputError(
            "missing",
            field,
            "the index was built without {part}, to which {field} would be added; build it with {part}, even empty",
            part=name,
        )


def additions(
    read: ReadPassages,
    names: Names,
    passage: Mapping[PassageId, int],
    gone: Collection[int],
    heirs: Mapping[int, int],
    fresh: list[tuple[str, bool]],
) -> Additions:
    """Return the additions from what was read in passages that a change adds.

    Parameters
    ----------
    read : ReadPassages
    names : Names
        The ids and names that exist before the change.
    passage : mapping of id to int
        Slots of the passages that the change adds.
    gone : collection of int
        Slots of the entities that it deletes.
    heirs : mapping of int to int
        Of those that it merges into others, the slots of these.
    fresh : list of (str, bool)
        Entities that it adds: name, and whether it is a word. New entities are appended.

    Raises
    ------
    InputError
        A passage that the change does not add.
    """
    for id in read.ids:
        if id not in passage:
            raise InputError(
                "missing",
                "memory",
                "{field} has the passage {given!r}, which this change does not add; also call add_passages or "
                "replace_passages with it",
                given=id,
            )
    rows = [passage[id] for id in read.ids]
    count = read.num_names
    slots = [
        *_slots(read, read.entities[:count], names, gone, heirs, fresh, words=False),
        *_slots(read, read.entities[count:], names, gone, heirs, fresh, words=True),
    ]
    nodes = rows + [-1 - slot for slot in slots]
    edges = [(nodes[a], nodes[b], kind, 1.0, rows[by] if by >= 0 else -1) for a, b, kind, by in read.stated_edges()]
    aliases = [
        (slot, alias) for at, slot in enumerate(slots[:count]) for alias in _other_names(read, at, slot, names, fresh)
    ]
    return Additions(aliases, edges, list(_facts(read, names, rows, slots)))


def _slots(
    read: ReadPassages,
    listed: Sequence[str],
    names: Names,
    gone: Collection[int],
    heirs: Mapping[int, int],
    fresh: list[tuple[str, bool]],
    *,
    words: bool,
) -> Iterator[int]:
    """Yield the slots of names, or of words; add those that no key finds."""
    keys = read.keys if words else lambda some: list(map(names.key, some))
    own = [(name, names.slots.entities + at) for at, (name, is_word) in enumerate(fresh) if is_word == words]
    added = dict(zip(keys([name for name, _ in own]), (slot for _, slot in own), strict=True)) if listed else {}
    for name, key in zip(listed, keys(listed) if listed else (), strict=True):
        known = names.words_with(key, read.keys) if words else names.alike(name)
        held = [slot for slot in (heirs.get(slot, slot) for slot in known) if slot not in gone]
        if not held and key not in added:
            added[key] = names.slots.entities + len(fresh)
            fresh.append((name, words))
        yield held[0] if held else added[key]


def _other_names(
    read: ReadPassages, at: int, slot: int, names: Names, fresh: Sequence[tuple[str, bool]]
) -> Iterator[str]:
    """Yield the spellings of a name that its entity does not have yet."""
    new = slot - names.slots.entities
    known = {fresh[new][0]} if new >= 0 else {names.name(slot), *names.aliases(slot)}
    yield from (name for name in (read.entities[at], *read.aliases[at]) if name not in known)


def _facts(
    read: ReadPassages, names: Names, rows: Sequence[int], slots: Sequence[int]
) -> Iterator[tuple[int, str, int, int]]:
    """Yield statements of facts; relations are spelled as the index first has them."""
    if not read.facts:
        return
    relations, known = [fact.relation for fact in read.facts], list(names.relations)
    keys = list(map(names.key, relations))
    written: dict[str, str] = {}
    for key, relation in zip([*map(names.key, known), *keys], [*known, *relations], strict=True):
        written.setdefault(key, relation)
    for fact, key in zip(read.facts, keys, strict=True):
        yield from ((slots[fact.head], written[key], slots[fact.tail], rows[at]) for at in fact.passages)


def _manner(words: WordInfo | None) -> str:
    if words is None:
        return "not at all"
    how = f"by the tagger {words.tagger}" if words.tagger else f"by the stemmer {words.stemmer}"
    return f"{how}, without {len(words.stopwords)} stop words"
