"""Numbers that entities and passages keep while an index changes, by which tables of them are continued."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import RowNumbers, StateNumbers, entries_of
from ..types.derived import Continued
from .contents import Contents

T = TypeVar("T")

#: Runs of aliases that are compared one by one; more are compared entity by entity, in one call for all.
MOST_RUNS = 64


def family_of(index: Contents) -> Hashable | None:
    """Return what all states of an index have in common; None for an index that is not in a directory."""
    return index.directory


class Entity(NamedTuple):
    """An entity by its number: its name, its aliases, and whether it is a word of the texts."""

    number: int
    name: str
    aliases: tuple[str, ...]
    is_word: bool


def entity_numbers(index: Contents) -> StateNumbers:
    """Return the numbers of the entities of an index.

    In later states an entity keeps its number as long as its aliases stay the same. With other aliases it is another
    entity for the tables of names.

    Examples
    --------
    >>> import tempfile, hopfuse as hf
    >>> from hopfuse.index.numbers import entity_numbers
    >>> folder = tempfile.mkdtemp()
    >>> saved = hf.Index.build(passages=[{"id": "a", "text": "Nice."}], entities=["Nice", "Bari"]).save(folder)
    >>> with hf.Index.open(folder, writable=True) as live:
    ...     first = live.index
    ...     numbers = entity_numbers(first)
    ...     with live.change() as change:
    ...         change.delete_entities(["Nice"])
    ...         change.add_entities(["Oslo"])
    ...     later = entity_numbers(live.refresh())
    >>> later.rows, later.since(numbers)
    (array([-1,  0,  1]), array([2]))
    """
    return _ENTITIES.get(index)


def passage_numbers(index: Contents) -> StateNumbers:
    """Return the numbers of the passages of an index; a passage that replaces another one has a new number."""
    return _PASSAGES.get(index)


def _of_entities(index: Contents, earlier: Contents, numbers: StateNumbers) -> StateNumbers | None:
    maps = index.rows_since(earlier)
    if maps is None or index.name_rule != earlier.name_rule:
        return None
    rows = maps.entities
    changed = _with_other_aliases(earlier, index, rows)
    if changed.size:
        rows = rows.copy()
        rows[changed] = -1
    return numbers.continued(rows, index.num_entities)


def _of_passages(index: Contents, earlier: Contents, numbers: StateNumbers) -> StateNumbers | None:
    maps = index.rows_since(earlier)
    return None if maps is None else numbers.continued(maps.passages, index.num_passages)


_ENTITIES: Continued[Contents, StateNumbers] = Continued(
    lambda index: StateNumbers.of_rows(index.num_entities), _of_entities, family_of
)
_PASSAGES: Continued[Contents, StateNumbers] = Continued(
    lambda index: StateNumbers.of_rows(index.num_passages), _of_passages, family_of
)


class NumberedTable:
    """What is looked up about the rows of all states of an index, by the numbers that they keep.

    Rows are added, and none is removed: a state has the rows of some of the numbers. So all states share the table, and
    a change costs what it adds. A reader may find numbers of later states, which its own state does not have.
    """

    def __init__(self) -> None:
        self._adding, self._reach = Lock(), 0

    def fill(self, index: Contents, numbers: StateNumbers) -> Self:
        """Add the rows of a first state, and return the table."""
        done = self._extend(index, numbers, numbers.numbers(), 0)
        assert done
        return self

    def continued(self, index: Contents, numbers: StateNumbers, before: RowNumbers) -> bool:
        """Add the rows that a later state has in addition to one with the numbers ``before``.

        Return False if that is not possible, and the table must be made anew: the states have nothing in common, or the
        table has been continued from the earlier one already.
        """
        if not isinstance(before, StateNumbers):
            return False
        fresh = numbers.since(before)
        return fresh is not None and self._extend(index, numbers, fresh, before.rows.size)

    def _extend(self, index: Contents, numbers: StateNumbers, fresh: NDArray[np.int64], reach: int) -> bool:
        with self._adding:
            if self._reach != reach:
                return False
            self._reach = -1  # of a table that fails in between
            if fresh.size:
                self._read(index, fresh.tolist(), numbers.rows[fresh].tolist())
            self._reach = numbers.rows.size
        return True

    def _read(self, index: Contents, numbers: list[int], rows: list[int]) -> None:
        """Add rows of an index under these numbers."""
        raise NotImplementedError


class EntityTable(NumberedTable):
    """What is looked up about entities, under :func:`entity_numbers`."""

    def _read(self, index: Contents, numbers: list[int], rows: list[int]) -> None:
        first = index.num_entities if index.words is None else index.words.first  # of the words
        names, aliases = read_rows(index.entity_names, rows), read_rows(index.entity_aliases, rows)
        self._add(list(map(Entity, numbers, names, aliases, [row >= first for row in rows])))

    def _add(self, entities: list[Entity]) -> None:
        """Add entities."""
        raise NotImplementedError


def read_rows(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """Return some rows of a column, ascending; many, and those that follow one another, are read together."""
    if len(rows) * 8 > len(column):
        every = list(column)
        return [every[row] for row in rows]
    if rows and rows[-1] - rows[0] == len(rows) - 1:
        return column[rows[0] : rows[-1] + 1]
    return [column[row] for row in rows]


def kept_facts(index: Contents, earlier: Contents) -> NDArray[np.int64]:
    """Return the fact of an earlier state that each fact of an index is, (F,), -1 for one that the other does not have.

    Examples
    --------
    >>> import tempfile, hopfuse as hf
    >>> from hopfuse.index.numbers import kept_facts
    >>> folder, rows = tempfile.mkdtemp(), [{"id": "a", "text": "Ada wrote."}, {"id": "b", "text": "She lived."}]
    >>> saved = hf.Index.build(
    ...     passages=rows,
    ...     entities=["Ada", "London", "Notes"],
    ...     facts=[
    ...         {"head": "Ada", "relation": "lived in", "tail": "London", "passage": 1},
    ...         {"head": "Ada", "relation": "wrote", "tail": "Notes", "passage": 0},
    ...     ],
    ... ).save(folder)
    >>> with hf.Index.open(folder, writable=True) as live:
    ...     earlier = live.index
    ...     with live.change() as change:
    ...         change.delete_passages(["b"])
    ...         change.add_facts([("Notes", "by", "Ada", "a")])
    ...     kept_facts(live.refresh(), earlier)
    array([ 1, -1])
    """
    maps, own, other = index.rows_since(earlier), index.facts, earlier.facts
    found = np.full(0 if own is None else len(own), -1)
    if maps is None or own is None or other is None:
        return found
    number = {name: at for at, name in enumerate(own.relations)}
    relations = np.array([number.get(name, -1) for name in other.relations], np.int64)
    head, kind, tail = other.rows.T
    moved = np.stack([maps.entities[head], relations[kind], maps.entities[tail]], axis=1)
    at, rows = np.flatnonzero((moved >= 0).all(axis=1)), own.rows.astype(np.int64)
    moved = moved[at]
    if np.array_equal(moved, rows[: at.size]):  # none was deleted
        found[: at.size] = at
        return found
    both = np.concatenate([moved, rows])
    order = np.lexsort(both.T)  # stable: of two that are equal, the earlier state's is first
    pairs = np.flatnonzero((both[order[1:]] == both[order[:-1]]).all(axis=1))
    found[order[pairs + 1] - at.size] = at[order[pairs]]
    return found


# ---- Aliases ---------------------------------------------------------------------------------------------------------


def _with_other_aliases(earlier: Contents, index: Contents, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the entities of an earlier state, by their rows there, that have other aliases in a later one."""
    before, after = _aliases(earlier), _aliases(index)
    if not before[0][-1] and not after[0][-1]:
        return np.zeros(0, np.int64)  # no entity has any
    kept = np.flatnonzero(rows >= 0)
    (first, last), (begin, end) = ((own[0][of], own[0][of + 1]) for own, of in ((before, kept), (after, rows[kept])))
    other = last - first != end - begin
    have = np.flatnonzero((last > first) & ~other)
    # Runs of entities whose aliases follow one another in both states are compared as they are, unless there are many.
    gaps = np.flatnonzero((first[have[1:]] != last[have[:-1]]) | (begin[have[1:]] != end[have[:-1]])) + 1
    runs = np.split(have, gaps) if gaps.size < MOST_RUNS else [have]
    for run in runs if have.size else []:
        spans = (first[run[0]], last[run[-1]]), (begin[run[0]], end[run[-1]])
        if gaps.size >= MOST_RUNS or not _are_same(before, after, *spans):
            other[run] = ~_are_equal(before, after, kept[run], rows[kept[run]])
    return np.asarray(kept[other], np.int64)


def _aliases(index: Contents) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]:
    """Return the ends of the entities' aliases, the ends of the aliases, and their bytes."""
    rows, offsets, data = (index.sections[f"entity.alias.{name}"].whole() for name in ("rows", "offsets", "bytes"))
    return rows, offsets, data


def _are_same(before: Any, after: Any, old: tuple[int, int], new: tuple[int, int]) -> bool:
    """Return whether a range of aliases of one state equals one of another; both have as many."""
    (ends, data), (others, more) = ((own[1][a : b + 1], own[2]) for own, (a, b) in ((before, old), (after, new)))
    shift = int(others[0]) - int(ends[0])
    return bool(
        np.array_equal(ends + shift, others) and np.array_equal(data[ends[0] : ends[-1]], more[others[0] : others[-1]])
    )


def _are_equal(before: Any, after: Any, old: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which entities have the same aliases as before; they have as many."""
    equal = np.ones(old.size, np.bool_)
    lengths = [np.diff(offsets) for _, offsets, _ in (before, after)]
    own, counts = entries_of(before[0], lengths[0], old)
    others, _ = entries_of(after[0], lengths[1], new)
    equal[np.repeat(np.arange(old.size), counts)[own != others]] = False
    same = np.flatnonzero(equal)
    texts = [(ends[of], ends[of + 1]) for ends, of in ((before[0], old[same]), (after[0], new[same]))]
    own, counts = _bytes_of(before, *texts[0])
    others, _ = _bytes_of(after, *texts[1])
    equal[same[np.repeat(np.arange(same.size), counts)[own != others]]] = False
    return equal


def _bytes_of(aliases: Any, first: NDArray[Any], last: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the bytes of ranges of aliases, and how many each has."""
    _, offsets, data = aliases
    begin, end = offsets[first].astype(np.int64), offsets[last].astype(np.int64)
    count = end - begin
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return data[np.repeat(begin, count) + within], count
