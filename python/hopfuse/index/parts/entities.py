"""Entities: which of them a user stated, and the rule under which their names are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import check_range
from ...text import NAME_RULE
from ..file.columns import RaggedStrings, string_arrays, string_column
from ..file.rows import take_rows, take_strings
from ..file.sections import Arrays, ArraysOrSections, Sections, damage_of
from ..log.rows import DeltaRows, Places
from ..membership import is_in
from . import words

Rows = NDArray[np.int64]


def build(
    names: Sequence[str], aliases: Sequence[Sequence[str]], stated: NDArray[np.bool_], rule: int = NAME_RULE
) -> Arrays:
    """Return the sections ``entity.*`` of names, each with its aliases and whether a user stated it."""
    return {
        **string_arrays("entity.name", names),
        "entity.alias.rows": np.cumsum([0, *map(len, aliases)], dtype=np.int64),
        **string_arrays("entity.alias", [alias for own in aliases for alias in own]),
        **build_stated(stated),
        **build_rule(rule),
    }


def build_stated(stated: NDArray[Any]) -> Arrays:
    """Return the section ``entity.stated``, or none if a user stated all entities."""
    return {} if stated.all() else {"entity.stated": stated.astype(np.uint8)}


def load_stated(sections: Sections, num_entities: int) -> NDArray[np.bool_]:
    """Return which entities a user stated, verified."""
    if "entity.stated" not in sections:
        return np.ones(num_entities, np.bool_)
    bits = sections["entity.stated"].whole()
    with damage_of(sections["entity.stated"]):
        check_range(bits, "stated", 2)
    return bits.view(np.bool_)


def build_rule(rule: int = NAME_RULE) -> Arrays:
    """Return the section ``entity.rule``."""
    return {"entity.rule": np.array([rule], np.int64)}


def load_rule(sections: Sections) -> int:
    """Return the number of the rule under which names are read."""
    return words.load_rule(sections, "entity.rule", "names", NAME_RULE)


# ---- Some passages ----


def subset(sections: Sections, stated: NDArray[np.bool_], entities: Rows) -> ArraysOrSections:
    """Return the sections of some of the entities."""
    aliases = RaggedStrings(sections["entity.alias.rows"], string_column(sections, "entity.alias"))
    return {
        **string_column(sections, "entity.name").take("entity.name", entities),
        **aliases.take("entity.alias", entities),
        **build_stated(stated[entities]),
        **build_rule(load_rule(sections)),
    }


# ---- Changes ----


def merge(log: DeltaRows, at: Places) -> ArraysOrSections:
    """Return the sections of entities after records."""
    rows = log.sections["entity.alias.rows"].whole()
    entity = np.concatenate([np.repeat(np.arange(log.before.entities), np.diff(rows)), log["alias.entity"]])
    offsets, data = log.whole("alias.name.offsets"), log.whole("alias.name.bytes")
    row = at.entity[entity] if entity.size else entity
    kept = np.flatnonzero((row >= 0) & ~_deleted_aliases(log, entity, offsets, data))
    order = kept[np.argsort(row[kept], kind="stable")]
    counts = np.bincount(row[kept], minlength=at.entities.size)
    return {
        **_stated(log, at.entities),
        **build_rule(load_rule(log.sections)),
        **log.taken("entity.name", at.entities),
        "entity.alias.rows": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        **take_strings("entity.alias", offsets, data, order),
    }


def _stated(log: DeltaRows, entities: NDArray[np.int64]) -> ArraysOrSections:
    """Return which entities a user stated, when they were added or later."""
    if not log.knows("entity.stated"):
        return {}
    bits, later = log.whole("entity.stated"), log["stated.entity"]
    if later.size:
        bits = bits.copy()
        bits[later] = 1
    return build_stated(take_rows(bits, entities))


def _deleted_aliases(
    log: DeltaRows, entity: NDArray[np.int64], offsets: NDArray[np.int64], data: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Return which aliases later batches delete."""
    deleted, gone = np.zeros(entity.size, bool), log["delete.alias.entity"]
    if not gone.size:
        return deleted
    ends, names = log.whole("delete.alias.name.offsets"), log.whole("delete.alias.name.bytes")
    last = {}  # the last batch that deletes an alias
    for slot, batch, first, end in zip(
        gone.tolist(), log.batch("delete.alias.entity").tolist(), ends[:-1], ends[1:], strict=True
    ):
        last[slot, names[first:end].tobytes()] = batch
    stated = np.concatenate([np.full(entity.size - log.added("alias.entity"), -1), log.batch("alias.entity")])
    for place in np.flatnonzero(is_in(entity, gone)).tolist():
        alias = data[offsets[place] : offsets[place + 1]].tobytes()
        deleted[place] = last.get((int(entity[place]), alias), -1) > stated[place]
    return deleted
