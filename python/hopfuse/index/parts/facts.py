"""Facts: triples of entities, and the passages that state them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of, indptr_of
from ..._validation import check_type
from ...errors import FormatError, InputError
from ...types import Facts
from ..file.columns import string_arrays, string_column
from ..file.sections import Arrays, Section, Sections, damage_of
from ..log.rows import DeltaRows, Places
from ..membership import deleted_later

Rows = NDArray[np.int64]


def build(facts: Facts, num_passages: int, num_entities: int) -> Arrays:
    """Return the sections ``fact.*``."""
    check_type(facts, "facts", Facts, "Facts: Facts.from_names(rows, entities, passages)")
    if (facts.num_passages, facts.num_entities) != (num_passages, num_entities):
        raise InputError(
            "length",
            "facts",
            "{field} are over {given[0]} passages and {given[1]} entities, the index has {allowed[0]} and "
            "{allowed[1]}; number them as the index does",
            given=(facts.num_passages, facts.num_entities),
            allowed=(num_passages, num_entities),
        )
    return {
        **string_arrays("fact.relation", facts.relations),
        "fact.row": facts.rows,
        "fact.indptr": facts.indptr,
        "fact.passage": facts.passages,
    }


def load(sections: Sections, num_passages: int, num_entities: int) -> Facts | None:
    """Return the facts, verified, or None if there are none."""
    if "fact.indptr" not in sections:
        return None
    with damage_of(sections["fact.indptr"]):
        return Facts(
            sections["fact.row"].whole(),
            list(string_column(sections, "fact.relation")),
            sections["fact.indptr"].whole(),
            sections["fact.passage"].whole(),
            num_entities=num_entities,
            num_passages=num_passages,
        )


def info(sections: Sections) -> dict[str, int] | None:
    """Return the facts' part of ``Index.info``."""
    if "fact.indptr" not in sections:
        return None
    return {
        "facts": sections["fact.row"].shape[0],
        "relations": len(string_column(sections, "fact.relation")),
        "statements": sections["fact.passage"].shape[0],
    }


# ---- Some passages ----


def stated_by(facts: Facts, allow: NDArray[np.bool_]) -> Rows:
    """Return the facts that some passages state, ascending."""
    if not len(facts):
        return np.zeros(0, np.int64)
    of = np.repeat(np.arange(len(facts)), np.diff(facts.indptr))
    return np.flatnonzero(np.bincount(of[allow[facts.passages]], minlength=len(facts)))


def subset(facts: Facts, kept: NDArray[np.int64], at: Places) -> tuple[Facts, Arrays]:
    """Return some facts, stated by the passages that are left, and their sections."""
    rows = facts.rows[kept].astype(np.int64)
    ends = at.entity[rows[:, [0, 2]]]
    used, order, number = np.unique(rows[:, 1], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(order))  # relations are numbered by their first facts
    names = [facts.relations[int(used[one])] for one in np.argsort(order)]
    passages, count = entries_of(facts.indptr, facts.passages, kept)
    passages = at.passage[passages] if passages.size else passages
    of = np.repeat(np.arange(kept.size), count)[passages >= 0]
    num_passages, num_entities = at.passages.size, at.entities.size
    found = Facts(
        np.stack([ends[:, 0], rank[number].reshape(-1), ends[:, 1]], axis=1).astype(np.int32).reshape(-1, 3),
        names,
        indptr_of(of, kept.size),
        passages[passages >= 0].astype(np.int32),
        num_entities=num_entities,
        num_passages=num_passages,
    )
    return found, build(found, num_passages, num_entities)


# ---- Changes ----


def merge(base: Facts, log: DeltaRows, at: Places) -> tuple[Facts, Arrays]:
    """Return the facts after records, those that a passage still states, and their sections."""
    rows, entity = _kept(base, log), at.entity
    rows = np.stack([_at(entity, rows[:, 0]), rows[:, 1], _at(entity, rows[:, 2]), _at(at.passage, rows[:, 3])], axis=1)
    rows = rows[(rows[:, [0, 2, 3]] >= 0).all(axis=1)]
    facts, order = _merged_rows(rows, log.relations, at.entities.size, at.passages.size)
    return facts, build(facts, at.passages.size, at.entities.size) | order


def current(base: Facts, log: DeltaRows, at: Places) -> NDArray[np.int64]:
    """Return the statements of facts that exist, by slots: head, number of the relation, tail, passage."""
    rows = _kept(base, log)
    there = [_at(at.entity, rows[:, 0]), _at(at.entity, rows[:, 2]), _at(at.passage, rows[:, 3])]
    return rows[(np.stack(there) >= 0).all(axis=0)]


def _kept(base: Facts, log: DeltaRows) -> NDArray[np.int64]:
    """Return the statements of facts, by slots, that no change deletes; their entities and passages may be deleted."""
    own = _stated_rows(base, log.sections.get("fact.statement"))
    rows = np.concatenate([own, log["fact.row"]])
    stated = np.concatenate([np.full(len(own), -1), log.batch("fact.row")])
    return rows[~deleted_later(rows[:, :3], stated, log["delete.fact"], log.batch("delete.fact"))]


def _merged_rows(
    rows: NDArray[np.int64], relations: Sequence[str], num_entities: int, num_passages: int
) -> tuple[Facts, Arrays]:
    """Merge statements (head, relation, tail, passage) into facts, in the order of their first statements."""
    order = np.lexsort((np.arange(len(rows)), rows[:, 2], rows[:, 1], rows[:, 0]))
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (rows[order[1:], :3] != rows[order[:-1], :3]).any(axis=1)
    first = order[fresh]  # the first statement of each fact
    fact = np.empty(len(rows), np.int64)
    fact[order] = _ranks(first)[np.cumsum(fresh) - 1]
    kinds = rows[np.sort(first), 1]
    used = kinds[np.sort(np.unique(kinds, return_index=True)[1])]
    renumbered = np.zeros(len(relations), np.int64)
    renumbered[used] = np.arange(used.size)
    triples = rows[np.sort(first), :3]
    triples[:, 1] = renumbered[triples[:, 1]]
    stored = np.lexsort((np.arange(len(rows)), rows[:, 3], fact))
    once = np.ones(len(rows), bool)
    once[1:] = (fact[stored[1:]] != fact[stored[:-1]]) | (rows[stored[1:], 3] != rows[stored[:-1], 3])
    stored = stored[once]  # the first of equal statements
    facts = Facts(
        triples.astype(np.int32),
        [relations[r] for r in used.tolist()],
        indptr_of(fact[stored], len(first)),
        rows[stored, 3].astype(np.int32),
        num_entities=num_entities,
        num_passages=num_passages,
    )
    rank = _ranks(stored)
    in_order = bool((rank == np.arange(rank.size)).all())
    return facts, {} if in_order else {"fact.statement": rank.astype(np.int32)}


def _stated_rows(facts: Facts, order: Section | None) -> NDArray[np.int64]:
    """Return a generation's statements in their order or, if that is not stored, in the order of the facts."""
    fact = np.repeat(np.arange(len(facts.rows)), np.diff(facts.indptr))
    rows = np.concatenate([facts.rows[fact], facts.passages[:, None]], axis=1).astype(np.int64)
    if order is None:
        return rows
    rank = order.whole()
    if not np.array_equal(np.sort(rank), np.arange(rank.size)):
        raise FormatError("order", None, "the section is not a permutation").at(order.label)
    ordered = np.empty_like(rows)
    ordered[rank] = rows
    return ordered


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of each of some distinct numbers."""
    ranks = np.empty(values.size, np.int64)
    ranks[np.argsort(values)] = np.arange(values.size)
    return ranks


def _at(place: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
    return place[slots] if place.size else np.full(slots.shape, -1)
