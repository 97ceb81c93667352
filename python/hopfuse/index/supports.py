"""What passages state about entities: an entity that a reader made goes with the last of these statements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.distinct import distinct
from ..types.edge_statements import UNKNOWN
from . import parts
from .contents import Contents
from .log.merge import slots_to_rows
from .log.records import LogRecord
from .log.rows import DeltaRows
from .membership import deleted_later, is_in
from .parts import graph_log

Rows = NDArray[np.int64]
#: The owner of a statement that is deleted. Like ``UNKNOWN``, it is an index from the end of a table of passages.
_GONE = -3
#: The arrays of a batch that are read here.
_ARRAYS = (
    *("delete.passage", "delete.entity", "delete.edge", "delete.fact"),
    *("edge.type_name.offsets", "edge.type_name.bytes", "edge.end", "edge.type", "edge.passage"),
    *("fact.relation.offsets", "fact.relation.bytes", "fact.row"),
)
#: Deleted statements are kept until there are more than this many, and more than others.
_LEAST_GONE = 1024


class Deletions(NamedTuple):
    """What a change deletes.

    Attributes
    ----------
    passages : int
    names : int
        Entities, apart from words.
    words : int
    facts : int
        Facts that no passage states any more.
    """

    passages: int
    names: int
    words: int
    facts: int


class _Statements(NamedTuple):
    """Statements about entities: edges, and facts as edges from head to tail."""

    owner: Rows  # the slot of the passage that states it, or UNKNOWN
    ends: Rows  # (n, 2): the slot of a passage, or -1 minus the slot of an entity
    kind: Rows  # the number of an edge's type, or -1 minus that of a fact's relation


class Supports:
    """The statements about entities after the last batch, and how many there are about each entity.

    An edge between a passage and an entity is stated by the passage. An edge between entities that no passage states,
    such as a synonym, does not count; one of which that is not known does, since a passage may state it. Each method
    reads all statements of the index a few times, at memory speed.
    """

    def __init__(self, base: Contents, rows: DeltaRows) -> None:
        self._directed = base.graph is not None and base.graph.directed
        self._types = {name: number for number, name in enumerate(rows.edge_types)}
        self._relations = {name: number for number, name in enumerate(rows.relations)}
        at, found = slots_to_rows(base, rows), []
        if base.graph is not None:
            ends, kind, _, by = graph_log.current(base.graph, base.edge_statements, rows, at)
            found.append(_of_edges(ends, kind.astype(np.int64), by))
        if base.facts is not None:
            found.append(_of_facts(parts.facts.current(base.facts, rows, at)))
        own = _joined(found)
        self._size, self._gone, self._slots = len(own.owner), 0, rows.after
        self._owner, self._ends, self._kind = (column.astype(np.int32) for column in own)
        self._count = _counts(own.ends, rows.after.entities)

    def apply(self, batch: LogRecord) -> None:
        """Apply a batch."""
        ended, added = self._ended(batch), self._added(batch)
        self._slots = batch.after
        self._count = self._grown_count(batch)
        self._count += _counts(added.ends, self._count.size) - _counts(self._ends[ended], self._count.size)
        self._owner[ended] = _GONE
        self._gone += ended.size
        if self._gone > max(_LEAST_GONE, self._size // 2):
            kept = np.flatnonzero(self._owner[: self._size] != _GONE)
            self._owner, self._ends, self._kind = self._owner[kept], self._ends[kept], self._kind[kept]
            self._size, self._gone = kept.size, 0
        self._append(added)

    def orphans(self, batch: LogRecord) -> Rows:
        """Return the slots, ascending, of entities that a batch leaves without a statement, though they had some."""
        ended = self._ends[self._ended(batch)]
        near = _entities(ended)
        count = self._grown_count(batch)
        left = count + _counts(self._added(batch).ends, count.size) - _counts(ended, count.size)
        found: Rows = near[left[near] == 0]
        return found[~is_in(found, batch["delete.entity"])]

    def entities_seen(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which entities some passages state something about, by slot.

        ``seen`` has a bit for each slot of a passage.
        """
        own = _table(np.flatnonzero(seen), self._slots.passages)[self._owner[: self._size]]
        found = np.zeros(self._slots.entities, np.bool_)
        found[_entities(self._ends[: self._size][own])] = True
        return found

    def entities_unseen(self, batch: LogRecord, seen: NDArray[np.bool_]) -> Rows:
        """Return the entities about which some passages state something before a batch and nothing after it.

        ``seen`` has a bit for each slot of a passage.
        """
        before, after, added = self._views(batch, seen)
        left = np.concatenate([_entities(self._ends[: self._size][after]), _entities(added.ends)])
        had = _entities(self._ends[: self._size][before & ~after])
        found: Rows = had[~is_in(had, left)]
        return found

    def num_facts_gone(self, batch: LogRecord, seen: NDArray[np.bool_] | None) -> int:
        """Return how many facts some passages, or all, state before a batch and not after it."""
        if not (self._kind[self._ended(batch)] < 0).any():
            return 0
        before, after, added = self._views(batch, seen)
        had, left = self._facts(before & ~after), self._facts(after)
        left = left[is_in(left[:, 0].copy(), had[:, 0].copy())] if len(had) else left[:0]
        again = np.concatenate([added.ends, added.kind[:, None]], axis=1)
        return len(np.unique(np.concatenate([had, left, again]), axis=0)) - len(
            np.unique(np.concatenate([left, again]), axis=0)
        )

    def _facts(self, some: NDArray[np.bool_]) -> Rows:
        """Return the facts (head, tail, relation), as they are encoded here, among some of the statements."""
        statements = np.flatnonzero(some & (self._kind[: self._size] < 0))
        return np.concatenate([self._ends[statements], self._kind[statements, None]], axis=1).astype(np.int64)

    def _views(
        self, batch: LogRecord, seen: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], _Statements]:
        """Return which statements are of the passages that are seen, which of these a batch leaves, and added ones."""
        owner = self._owner[: self._size]
        own = owner != _GONE if seen is None else _table(np.flatnonzero(seen), self._slots.passages)[owner]
        stays = own.copy()
        stays[self._ended(batch)] = False
        return own, stays, self._added(batch)

    def _ended(self, batch: LogRecord) -> Rows:
        """Return the statements, ascending, that a batch deletes: with a passage or an entity, or themselves."""
        dead = [self._of_passages(batch["delete.passage"])]
        for gone, ordered in ((self._edges(batch, "delete.edge"), self._directed), (self._deleted_facts(batch), True)):
            if len(gone):
                dead.append(self._equal(gone, ordered))
        found = distinct(np.concatenate(dead))
        entities = batch["delete.entity"]
        left = self._count - _counts(self._ends[found], self._count.size)
        entities = entities[left[entities] > 0]  # about the others nothing is left to delete
        return np.union1d(found, self._about(entities)) if entities.size else found

    def _of_passages(self, slots: Rows) -> Rows:
        """Return the statements of some passages."""
        if not slots.size:
            return slots
        return np.flatnonzero(_table(slots, self._slots.passages).take(self._owner[: self._size]))

    def _equal(self, gone: Rows, ordered: bool) -> Rows:
        """Return the statements that are equal to some, in the order of their ends or in any."""
        own = np.concatenate([self._ends[: self._size], self._kind[: self._size, None]], axis=1).astype(np.int64)
        if not ordered:
            own[:, :2].sort(axis=1)
            gone[:, :2].sort(axis=1)
        equal = deleted_later(own, np.zeros(self._size, np.int64), gone, np.ones(len(gone), np.int64))
        return np.flatnonzero(equal & (self._owner[: self._size] != _GONE))

    def _about(self, entities: Rows) -> Rows:
        """Return the statements about some entities."""
        ends = self._ends[: self._size].reshape(-1).astype(np.int64)
        near = is_in(ends, -1 - entities).reshape(-1, 2).any(axis=1)
        return np.flatnonzero(near & (self._owner[: self._size] != _GONE))

    def _added(self, batch: LogRecord) -> _Statements:
        """Return the statements that a batch adds."""
        edges, facts = self._edges(batch, "edge.end", "edge.type"), batch["fact.row"]
        numbers = _numbers(batch, "fact.relation", self._relations)
        facts = np.stack([facts[:, 0], _taken(numbers, facts[:, 1]), facts[:, 2], facts[:, 3]], axis=1)
        return _joined([_of_edges(edges[:, :2], edges[:, 2], batch["edge.passage"]), _of_facts(facts)])

    def _edges(self, batch: LogRecord, name: str, kinds: str = "") -> Rows:
        """Return edges of a batch: ends, and the common number of the type, which may be an array of its own."""
        rows = batch[name]
        kind = batch[kinds] if kinds else rows[:, 2]
        numbers = _numbers(batch, "edge.type_name", self._types)
        return np.concatenate([rows[:, :2], _taken(numbers, kind)[:, None]], axis=1)

    def _deleted_facts(self, batch: LogRecord) -> Rows:
        rows = batch["delete.fact"]
        numbers = _numbers(batch, "fact.relation", self._relations)
        return -1 - np.stack([rows[:, 0], rows[:, 2], _taken(numbers, rows[:, 1])], axis=1)

    def _grown_count(self, batch: LogRecord) -> Rows:
        """Return the number of statements about each entity before a batch; 0 for those that it adds."""
        return np.concatenate([self._count, np.zeros(batch.after.entities - self._count.size, np.int64)])

    def _append(self, added: _Statements) -> None:
        count = self._size + len(added.owner)
        if count > len(self._owner):
            more = count - self._size + count // 8
            self._owner, self._ends, self._kind = (
                np.concatenate([column[: self._size], np.empty((more, *column.shape[1:]), np.int32)])
                for column in (self._owner, self._ends, self._kind)
            )
        for column, rows in zip((self._owner, self._ends, self._kind), added, strict=True):
            column[self._size : count] = rows
        self._size = count


def statements_in(batch: LogRecord) -> LogRecord:
    """Return a batch with only the arrays that supports are counted by."""
    found = LogRecord({name: batch.arrays[name] for name in _ARRAYS if name in batch.arrays}, batch.before)
    found.after = batch.after
    return found


def _of_edges(ends: Rows, kind: Rows, by: Rows) -> _Statements:
    """Return the edges at entities that a passage states, or may state."""
    at = ends.max(axis=1, initial=-1)
    owner = np.where(at >= 0, at, by)
    kept = (ends < 0).any(axis=1) & ((owner >= 0) | (owner == UNKNOWN))
    return _Statements(owner[kept], ends[kept], kind[kept])


def _of_facts(rows: Rows) -> _Statements:
    """Return statements of facts (head, relation, tail, passage)."""
    return _Statements(rows[:, 3], -1 - rows[:, [0, 2]], -1 - rows[:, 1])


def _joined(found: list[_Statements]) -> _Statements:
    none = _Statements(np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros(0, np.int64))
    return _Statements(*(np.concatenate(columns) for columns in zip(none, *found, strict=True)))


def _numbers(batch: LogRecord, name: str, known: dict[str, int]) -> Rows:
    """Return the common numbers of a batch's own names; new ones get the next numbers."""
    return np.array([known.setdefault(one, len(known)) for one in batch.strings(name)], np.int64)


def _taken(numbers: Rows, places: Rows) -> Rows:
    return numbers[places] if places.size else places


def _counts(ends: NDArray[np.signedinteger], size: int) -> Rows:
    """Return how many ends each entity is."""
    return np.bincount(-1 - ends[ends < 0].astype(np.int64), minlength=size)


def _entities(ends: NDArray[np.signedinteger]) -> Rows:
    """Return the entities among ends, ascending."""
    return distinct(-1 - ends[ends < 0].astype(np.int64))


def _table(passages: Rows, count: int) -> NDArray[np.bool_]:
    """Return a bit for each slot of a passage, and False for owners that are none."""
    table = np.zeros(count + 3, np.bool_)
    table[passages] = True
    return table
