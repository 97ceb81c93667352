"""Facts: triples of entities, and the passages that state them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of, indptr_of, indptr_of_counts
from ..._validation import check_type
from ...errors import FormatError, InputError
from ...types import Facts
from ...types.facts import facts_by_end
from ..file.columns import string_arrays, string_column
from ..file.rows import is_whole
from ..file.sections import Arrays, ArraysOrSections, LazySection, Section, Sections, damage_of
from ..log.lineage import MergeResult
from ..log.rows import DeltaRows, Places
from ..membership import deleted_later, is_in

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


def merge(base: Facts, log: DeltaRows, at: Places, before: MergeResult | None = None) -> tuple[Facts, ArraysOrSections]:
    """Return the facts after records, those that a passage still states, and their sections.

    Given those after fewer records of the same log, only statements that came or were deleted since are looked for.
    """
    earlier = None if before is None else before.made.get("facts")
    if before is not None and isinstance(earlier, MergedFacts):
        new = _new_rows(log, at, before.log)
        if len(new) <= _FEW:
            stated = _continued(earlier.statements, new, log, at, before.log)
            found = MergedFacts(stated, log.relations, at, earlier)
            return found, _sections(found, before.sections if found.relations is earlier.relations else {})
    rows = _kept(base, log)
    there = (_at(at.entity, rows[:, 0]) >= 0) & (_at(at.entity, rows[:, 2]) >= 0) & (_at(at.passage, rows[:, 3]) >= 0)
    found = MergedFacts(_grouped(rows[there]), log.relations, at)
    return found, _sections(found, {})


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


class _Statements(NamedTuple):
    """Facts in the order of their first statements; entities and passages by slot, relations by common numbers."""

    triples: Rows  # (F, 3)
    indptr: Rows
    passages: Rows
    """Of each statement; ascending within a fact."""
    order: Rows
    """The place of each statement in the order in which they were made."""


class MergedFacts(Facts):
    """The facts of a generation and its log; made of what was checked when it was read."""

    def __init__(
        self, stated: _Statements, relations: Sequence[str], at: Places, earlier: MergedFacts | None = None
    ) -> None:
        kinds = stated.triples[:, 1]
        first = np.full(len(relations), kinds.size)
        first[kinds[::-1]] = np.arange(kinds.size)[::-1]  # the last of several assignments stays
        used = np.argsort(first, kind="stable")[: int((first < kinds.size).sum())]
        place = np.zeros(len(relations), np.int64)
        place[used] = np.arange(used.size)
        ends = [_at(at.entity, stated.triples[:, end]) for end in (0, 2)]
        rows = np.stack([ends[0], place[kinds], ends[1]], axis=1).astype(np.int32)
        passages = _at(at.passage, stated.passages).astype(np.int32)
        for array in (rows, passages, stated.indptr):
            array.flags.writeable = False
        names = (
            tuple(relations[kind] for kind in used.tolist()) if earlier is None else _names(relations, used, earlier)
        )
        made = {one.name: one.default_factory() for one in fields(Facts) if one.default_factory is not MISSING}
        made |= {"rows": rows, "relations": names, "indptr": stated.indptr, "passages": passages}
        # the fields of a frozen class
        self.__dict__.update(made, num_entities=at.entities.size, num_passages=at.passages.size)
        self.__dict__.update(statements=stated, used=used)

    statements: _Statements
    used: Rows
    """The common numbers of the relations."""

    @cached_property
    def _by_end(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return facts_by_end(self.rows, self.num_entities)

    @property
    def incident_indptr(self) -> NDArray[np.int64]:
        """Where the facts of each entity begin; made at the first use."""
        return self._by_end[0]

    @property
    def incident(self) -> NDArray[np.int32]:
        """The facts that each entity is an end of; made at the first use."""
        return self._by_end[1]


def _names(relations: Sequence[str], used: Rows, earlier: MergedFacts | None) -> Sequence[str]:
    """Return the names of the relations, which are those of an earlier state and some more if they begin with these."""
    known = 0 if earlier is None else earlier.used.size
    if earlier is not None and np.array_equal(used[:known], earlier.used):
        more = tuple(relations[kind] for kind in used[known:].tolist())
        return (*earlier.relations, *more) if more else earlier.relations
    return tuple(relations[kind] for kind in used.tolist())


def _sections(facts: MergedFacts, same: Sections) -> ArraysOrSections:
    """Return the sections of facts; ``same`` has those of the names of relations, if they were made before."""
    names = {
        name: same[name] if name in same else LazySection(name, dtype, partial(_relation_array, facts.relations, name))
        for name, dtype in (("fact.relation.offsets", np.int64), ("fact.relation.bytes", np.uint8))
    }
    order = facts.statements.order
    in_order = is_whole(order, order.size)
    return {
        **names,
        "fact.row": facts.rows,
        "fact.indptr": facts.indptr,
        "fact.passage": facts.passages,
        **({} if in_order else {"fact.statement": order.astype(np.int32)}),
    }


def _relation_array(relations: Sequence[str], name: str) -> NDArray[Any]:
    return string_arrays("fact.relation", relations)[name]


def _grouped(rows: Rows) -> _Statements:
    """Group statements (head, relation, tail, passage) by fact, in the order of the facts' first statements."""
    order = np.lexsort((np.arange(len(rows)), rows[:, 2], rows[:, 1], rows[:, 0]))
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (rows[order[1:], :3] != rows[order[:-1], :3]).any(axis=1)
    first = order[fresh]  # the first statement of each fact
    fact = np.empty(len(rows), np.int64)
    fact[order] = _ranks(first)[np.cumsum(fresh) - 1]
    stored = np.lexsort((np.arange(len(rows)), rows[:, 3], fact))
    once = np.ones(len(rows), bool)
    once[1:] = (fact[stored[1:]] != fact[stored[:-1]]) | (rows[stored[1:], 3] != rows[stored[:-1], 3])
    stored = stored[once]  # the first of equal statements
    indptr = indptr_of(fact[stored], len(first))
    return _Statements(rows[np.sort(first), :3], indptr, rows[stored, 3], _ranks(stored))


#: Statements up to which those that came since an earlier state are looked for among its facts.
_FEW = 1 << 10


def _new_rows(log: DeltaRows, at: Places, before: DeltaRows) -> Rows:
    """Return the statements that came since an earlier state and still exist, by slots."""
    first = before.added("fact.row")
    rows, batch = log["fact.row"][first:], log.batch("fact.row")[first:]
    kept = ~deleted_later(rows[:, :3], batch, log["delete.fact"], log.batch("delete.fact"))
    there = [_at(at.entity, rows[:, 0]), _at(at.entity, rows[:, 2]), _at(at.passage, rows[:, 3])]
    return rows[kept & (np.stack(there) >= 0).all(axis=0)]


def _continued(stated: _Statements, new: Rows, log: DeltaRows, at: Places, before: DeltaRows) -> _Statements:
    """Return the facts after further statements, without those that were deleted."""
    fact, triples = np.repeat(np.arange(len(stated.triples)), np.diff(stated.indptr)), stated.triples
    passages, order = stated.passages, stated.order
    kept = _at(at.passage, passages) >= 0
    lives = (_at(at.entity, triples[:, 0]) >= 0) & (_at(at.entity, triples[:, 2]) >= 0)
    gone = log["delete.fact"][before.added("delete.fact") :]
    if len(gone):
        lives &= ~deleted_later(triples, np.full(len(triples), -1), gone, np.zeros(len(gone), np.int64))
    if not lives.all():
        kept &= lives[fact]
    if not kept.all():
        fact, passages, order = fact[kept], passages[kept], order[kept]
    elif not len(new):
        return stated
    if len(new):
        own, more = _facts_of(new, triples, fact, passages)
        triples = np.concatenate([triples, more])
        new, own = new[own >= 0], own[own >= 0]
        fact, passages = np.concatenate([fact, own]), np.concatenate([passages, new[:, 3]])
        order = np.concatenate([order, stated.order.size + np.arange(own.size)])
    return _in_order(triples, fact, passages, order)


def _facts_of(new: Rows, triples: Rows, fact: Rows, passages: Rows) -> tuple[Rows, Rows]:
    """Return the fact of each new statement, -1 if its passage states that fact already, and the facts that are new."""
    near = is_in(triples[:, 0].copy(), new[:, 0].copy()) & is_in(triples[:, 2].copy(), new[:, 2].copy())
    number = {tuple(triples[at].tolist()): at for at in np.flatnonzero(near).tolist()}
    known = np.flatnonzero(is_in(fact, np.array([*number.values()], np.int64))) if number else np.zeros(0, np.int64)
    known = known[is_in(passages[known], new[:, 3].copy())]
    stated = set(zip(fact[known].tolist(), passages[known].tolist(), strict=True))
    found, fresh = [], list[tuple[int, ...]]()
    for head, relation, tail, passage in new.tolist():
        triple = (head, relation, tail)
        if triple not in number:
            number[triple] = len(triples) + len(fresh)
            fresh.append(triple)
        one = (number[triple], passage)
        found.append(-1 if one in stated else one[0])
        stated.add(one)
    return np.array(found, np.int64), np.array(fresh, np.int64).reshape(-1, 3)


def _in_order(triples: Rows, fact: Rows, passages: Rows, order: Rows) -> _Statements:
    """Return facts in the order of their first statements, without those that no statement has.

    All arrays are nearly in order, which a stable sort is fast for.
    """
    by_fact = np.argsort(fact << 32 | passages, kind="stable")
    fact, passages, order = fact[by_fact], passages[by_fact], order[by_fact]
    begins = np.flatnonzero(np.concatenate([[True], fact[1:] != fact[:-1]])) if fact.size else np.zeros(0, np.int64)
    held = fact[begins]
    first = np.minimum.reduceat(order, begins) if begins.size else begins
    place, counts = np.argsort(first, kind="stable"), np.diff(np.append(begins, fact.size))
    if not is_whole(place, place.size):
        within = np.repeat(begins[place] - (np.cumsum(counts[place]) - counts[place]), counts[place])
        moved = within + np.arange(fact.size)
        passages, order = passages[moved], order[moved]
    marks = np.zeros(int(order.max(initial=-1)) + 1, np.int64)
    marks[order] = 1
    return _Statements(triples[held[place]], indptr_of_counts(counts[place]), passages, (np.cumsum(marks) - 1)[order])


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
