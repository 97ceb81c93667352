"""Merge entities: state their aliases, edges and facts again of the entity that stays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .additions import Additions
from .batch import LEAST_WEIGHT, MOST_WEIGHT
from .delta import DeltaRows
from .membership import is_in
from .merge import current_edges, places
from .merge_facts import current_facts
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


def restated(
    rows: DeltaRows, names: Names, heirs: Mapping[int, int], gone_passages: Collection[int], gone: Collection[int]
) -> Additions:
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
    gone_passages, gone : collection of int
        Slots of the passages, and of all entities, that the change deletes.

    Raises
    ------
    InputError
        An edge has a weight that a change cannot state.
    """
    dead = np.array([*gone_passages], np.int64), np.array([slot for slot in gone if slot not in heirs], np.int64)
    return Additions(list(_aliases(names, heirs)), _edges(rows, heirs, *dead), _facts(rows, heirs, *dead))


def _aliases(names: Names, heirs: Mapping[int, int]) -> list[tuple[int, str]]:
    known: dict[int, set[str]] = {}
    found = []
    for slot, heir in heirs.items():
        own = known.setdefault(heir, {names.name(heir), *names.aliases(heir)})
        for name in (names.name(slot), *names.aliases(slot)):
            if name not in own:
                own.add(name)
                found.append((heir, name))
    return found


def _edges(
    rows: DeltaRows, heirs: Mapping[int, int], dead_passages: NDArray[np.int64], dead: NDArray[np.int64]
) -> list[tuple[int, int, str, float, int]]:
    if rows.base.graph is None:
        return []
    ends, kind, weight, passage = current_edges(rows)
    merged = np.array([*heirs, *heirs.values()], np.int64)
    near = is_in(ends.reshape(-1), -1 - merged).reshape(-1, 2).any(axis=1)
    near &= ~is_in(ends.reshape(-1), np.concatenate([dead_passages, -1 - dead])).reshape(-1, 2).any(axis=1)
    near &= ~is_in(passage, dead_passages)
    directed, mentions, found = rows.base.graph.directed, set[tuple[int, int, int]](), []
    old = {-1 - slot: -1 - heir for slot, heir in heirs.items()}
    again = []
    columns = (*ends[near].T, kind[near], weight[near], passage[near])
    for a, b, type, heavy, by in zip(*(column.tolist() for column in columns), strict=True):
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


def _facts(
    rows: DeltaRows, heirs: Mapping[int, int], dead_passages: NDArray[np.int64], dead: NDArray[np.int64]
) -> list[tuple[int, str, int, int]]:
    if rows.base.facts is None:
        return []
    at = places(rows)
    facts = current_facts(rows, at.passage, at.entity)
    facts = facts[~(is_in(facts[:, 3].copy(), dead_passages) | _has(facts, dead))]
    near = facts[_has(facts, np.array([*heirs, *heirs.values()], np.int64))].tolist()
    known = {tuple(fact) for fact in near if fact[0] not in heirs and fact[2] not in heirs}
    found = []
    for head, relation, tail, passage in near:
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
