"""Facts after changes: those that a passage still states, in the order of their first statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import indptr_of
from ...errors import FormatError
from ...types import Facts
from ..contents import Contents
from ..membership import deleted_later
from .delta import DeltaRows

Arrays = dict[str, NDArray[Any]]


def merge_facts(delta: DeltaRows, passage: NDArray[np.int64], entity: NDArray[np.int64]) -> tuple[Facts, Arrays]:
    """Return the facts, and the section ``fact.statement`` if it is needed.

    ``passage`` and ``entity`` hold the row of each slot, -1 if it was deleted.
    """
    rows = _kept(delta)
    rows = np.stack([_at(entity, rows[:, 0]), rows[:, 1], _at(entity, rows[:, 2]), _at(passage, rows[:, 3])], axis=1)
    rows = rows[(rows[:, [0, 2, 3]] >= 0).all(axis=1)]
    return merged_rows(rows, delta.relations, int((entity >= 0).sum()), int((passage >= 0).sum()))


def current_facts(delta: DeltaRows, passage: NDArray[np.int64], entity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the statements of facts that exist, by slots: head, number of the relation, tail, passage.

    ``passage`` and ``entity`` hold the row of each slot, -1 if it was deleted.
    """
    rows = _kept(delta)
    there = [_at(entity, rows[:, 0]), _at(entity, rows[:, 2]), _at(passage, rows[:, 3])]
    return rows[(np.stack(there) >= 0).all(axis=0)]


def _kept(delta: DeltaRows) -> NDArray[np.int64]:
    """Return the statements of facts, by slots, that no change deletes; their entities and passages may be deleted."""
    facts = delta.base.facts
    assert facts is not None
    own = _base_rows(delta.base, facts)
    rows = np.concatenate([own, delta["fact.row"]])
    stated = np.concatenate([np.full(len(own), -1), delta.batch("fact.row")])
    return rows[~deleted_later(rows[:, :3], stated, delta["delete.fact"], delta.batch("delete.fact"))]


def merged_rows(
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


def _base_rows(base: Contents, facts: Facts) -> NDArray[np.int64]:
    """Return a generation's statements in their order or, if that is not stored, in the order of the facts."""
    fact = np.repeat(np.arange(len(facts.rows)), np.diff(facts.indptr))
    rows = np.concatenate([facts.rows[fact], facts.passages[:, None]], axis=1).astype(np.int64)
    if "fact.statement" not in base.sections:
        return rows
    rank = base.sections["fact.statement"].whole()
    if not np.array_equal(np.sort(rank), np.arange(rank.size)):
        raise FormatError("order", None, "the section is not a permutation").at(base.sections["fact.statement"].label)
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
