"""Merge entities: state their aliases, edges and facts again of the entity that stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .additions import Additions
from .log.delta import DeltaRows
from .log.encode import LEAST_WEIGHT, MOST_WEIGHT
from .log.merge import current_edges, places
from .log.merge_facts import current_facts
from .membership import is_in
from .names import Names


def merged_slots(names: Names, merged: Sequence[tuple[str, str]]) -> dict[int, int]:
    """Return the slots of the entities that go, each with that of the entity that stays.

    Raises
    ------
    InputError
        A name of no entity or of several, a word, an entity that goes twice or into one that goes too.
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
    """What a change deletes, by slots; an end of an edge is the slot of a passage, or -1 minus that of an entity."""

    passages: Set[int]
    entities: Set[int]
    aliases: Set[tuple[int, str]]
    edges: Set[tuple[int, int, str]]
    """The smaller end, the other one, and the type."""
    facts: Set[tuple[int, str, int]]


def restated(rows: DeltaRows, names: Names, heirs: Mapping[int, int], deleted: Deleted) -> Additions:
    """Return the aliases, edges and facts of entities, stated of others.

    An edge with a passage counts once if both have one of its type: the weight is that of the entity that stays. Edges
    and facts between merged entities are left out, and so are equal statements of facts by one passage.

    Parameters
    ----------
    rows : DeltaRows
        The rows of the index, all of which ``names`` knows.
    names : Names
    heirs : mapping of int to int
        Slots of the entities that go, and for each, that of the entity that stays.
    deleted : Deleted
        What else the change deletes, which is not stated again.

    Raises
    ------
    InputError
        An edge has a weight that a change cannot state.
    """
    return Additions(_aliases(names, heirs, deleted), _edges(rows, heirs, deleted), _facts(rows, heirs, deleted))


def _aliases(names: Names, heirs: Mapping[int, int], deleted: Deleted) -> list[tuple[int, str]]:
    known: dict[int, set[str]] = {}
    found = []
    for slot, heir in heirs.items():
        own = known.setdefault(heir, {names.name(heir), *names.aliases(heir)})
        for name in (names.name(slot), *names.aliases(slot)):
            if name not in own and (slot, name) not in deleted.aliases:
                own.add(name)
                found.append((heir, name))
    return found


def _edges(rows: DeltaRows, heirs: Mapping[int, int], deleted: Deleted) -> list[tuple[int, int, str, float, int]]:
    if rows.base.graph is None:
        return []
    ends, kind, weight, passage = current_edges(rows)
    merged = np.array([*heirs, *heirs.values()], np.int64)
    near = is_in(ends.reshape(-1), -1 - merged).reshape(-1, 2).any(axis=1)
    dead = np.array([*deleted.passages, *(-1 - slot for slot in deleted.entities)], np.int64)
    near &= ~is_in(ends.reshape(-1), dead).reshape(-1, 2).any(axis=1)
    near &= ~is_in(passage, np.array([*deleted.passages], np.int64))
    directed, mentions, found = rows.base.graph.directed, set[tuple[int, int, int]](), []
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


def _facts(rows: DeltaRows, heirs: Mapping[int, int], deleted: Deleted) -> list[tuple[int, str, int, int]]:
    if rows.base.facts is None:
        return []
    at = places(rows)
    facts = current_facts(rows, at.passage, at.entity)
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
