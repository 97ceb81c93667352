"""Additions of a change that are not given as rows: what was read in passages, and what merged entities had.

Names that were read are found by the keys of their spellings. What was stated of an entity that is merged into another
is stated again of that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import wrong_type
from ..errors import InputError
from . import parts
from .contents import Contents, PassageId
from .log.merge import slots_to_rows
from .log.records import LEAST_WEIGHT, MOST_WEIGHT
from .membership import is_in
from .names import Names
from .parts import graph_log
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
    if not hasattr(read, "stated_edges"):
        raise wrong_type(read, "memory", "a Memory: hopfuse.extract.build_memory(reader.read(passages))")
    check_has(base.graph, "a graph", "memory")
    check_has(base.facts if read.facts else (), "facts", "memory")
    ours, theirs = (None if words is None else words.with_first(0) for words in (base.words, read.words))
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


# ---- Merged entities ----


def merged_slots(names: Names, merged: Sequence[tuple[str, str]]) -> dict[int, int]:
    """Return the slots of the entities that go, each with that of the entity that stays.

    Raises
    ------
    InputError
        A name of no entity or of several, a word, an entity that goes twice, or into one that itself goes.
    """
    heirs: dict[int, int] = {}
    for kept, other in merged:
        heir, slot = names.entity(kept), names.entity(other)
        for name, one in ((kept, heir), (other, slot)):
            if names.is_word(one):
                raise InputError(
                    "unsupported", "merge", "{field} has the word {given!r}; only names can be merged", given=name
                )
        if heirs.setdefault(slot, heir) != heir or slot == heir:
            raise InputError(
                "conflict",
                "merge",
                "{field} merges {given!r} into itself or into two entities; give it once, with another name",
                given=other,
            )
    for kept, _ in merged:
        if names.entity(kept) in heirs:
            raise InputError(
                "conflict",
                "merge",
                "{field} merges {given!r} into another entity, and others into it; merge all into the one that stays",
                given=kept,
            )
    return heirs


class Deleted(NamedTuple):
    """Deletions of a change, by slots; an end of an edge is the slot of a passage, or -1 minus that of an entity."""

    passages: Set[int]
    entities: Set[int]
    aliases: Set[tuple[int, str]]
    edges: Set[tuple[int, int, str]]
    """The smaller end, the other one, and the type."""
    facts: Set[tuple[int, str, int]]


def restated(names: Names, heirs: Mapping[int, int], deleted: Deleted) -> Additions:
    """Return the aliases, edges and facts of entities, stated of others.

    An edge with a passage counts once if both have one of its type: its weight comes from the entity that stays. Edges
    and facts between merged entities are left out, and so are equal statements of facts by one passage.

    Parameters
    ----------
    names : Names
        Of all rows of the index.
    heirs : mapping of int to int
        Slots of the entities that go, and for each, that of the entity that stays.
    deleted : Deleted
        What else the change deletes, which is not stated again.

    Raises
    ------
    InputError
        An edge has a weight that a change cannot state.
    """
    return Additions(
        _restated_aliases(names, heirs, deleted),
        _restated_edges(names, heirs, deleted),
        _restated_facts(names, heirs, deleted),
    )


def _restated_aliases(names: Names, heirs: Mapping[int, int], deleted: Deleted) -> list[tuple[int, str]]:
    known: dict[int, set[str]] = {}
    found = []
    for slot, heir in heirs.items():
        own = known.setdefault(heir, {names.name(heir), *names.aliases(heir)})
        for name in (names.name(slot), *names.aliases(slot)):
            if name not in own and (slot, name) not in deleted.aliases:
                own.add(name)
                found.append((heir, name))
    return found


def _restated_edges(names: Names, heirs: Mapping[int, int], deleted: Deleted) -> list[tuple[int, int, str, float, int]]:
    base, rows = names.base, names.rows()
    if base.graph is None:
        return []
    at = slots_to_rows(base, rows)
    ends, kind, weight, passage = graph_log.current(base.graph, base.edge_statements, rows, at)
    merged = np.array([*heirs, *heirs.values()], np.int64)
    near = is_in(ends.reshape(-1), -1 - merged).reshape(-1, 2).any(axis=1)
    dead = np.array([*deleted.passages, *(-1 - slot for slot in deleted.entities)], np.int64)
    near &= ~is_in(ends.reshape(-1), dead).reshape(-1, 2).any(axis=1)
    near &= ~is_in(passage, np.array([*deleted.passages], np.int64))
    directed, mentions, found = base.graph.directed, set[tuple[int, int, int]](), []
    old = {-1 - slot: -1 - heir for slot, heir in heirs.items()}
    again = []
    columns = (*ends[near].T, kind[near], weight[near], passage[near])
    for a, b, type, heavy, by in zip(*(column.tolist() for column in columns), strict=True):
        if (min(a, b), max(a, b), rows.edge_types[type]) in deleted.edges:
            continue
        one, two = old.get(a, a), old.get(b, b)
        key = (one, two, type) if directed else (*sorted((one, two)), type)
        if (one, two) == (a, b):
            mentions.add(key)
        elif one != two or a == b:
            again.append((key, one, two, type, heavy, by))
    for key, one, two, type, heavy, by in again:
        with_passage = one >= 0 or two >= 0
        if with_passage and key in mentions:
            continue
        mentions.add(key)
        if not LEAST_WEIGHT <= heavy <= MOST_WEIGHT:
            raise InputError(
                "range",
                "merge",
                "an edge of the entities to merge weighs {given}; a change can state {allowed}: build the index again",
                given=heavy,
                allowed="2⁻⁶⁴ .. 2⁶⁴",
            )
        found.append((one, two, rows.edge_types[type], heavy, by))
    return found


def _restated_facts(names: Names, heirs: Mapping[int, int], deleted: Deleted) -> list[tuple[int, str, int, int]]:
    base, rows = names.base, names.rows()
    if base.facts is None:
        return []
    facts = parts.facts.current(base.facts, rows, slots_to_rows(base, rows))
    gone = is_in(facts[:, 3].copy(), np.array([*deleted.passages], np.int64))
    facts = facts[~(gone | _has(facts, np.array([*deleted.entities], np.int64)))]
    near = facts[_has(facts, np.array([*heirs, *heirs.values()], np.int64))].tolist()
    known = {tuple(fact) for fact in near if fact[0] not in heirs and fact[2] not in heirs}
    found = []
    for head, relation, tail, passage in near:
        if (head, rows.relations[relation], tail) in deleted.facts:
            continue
        one, two = heirs.get(head, head), heirs.get(tail, tail)
        fact = (one, relation, two, passage)
        if fact in known or (one == two and head != tail):
            continue
        known.add(fact)
        found.append((one, rows.relations[relation], two, passage))
    return found


def _has(facts: NDArray[np.int64], entities: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which facts have one of some entities."""
    return is_in(facts[:, 0].copy(), entities) | is_in(facts[:, 2].copy(), entities)
