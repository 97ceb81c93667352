"""Entities: which of them a user stated, and the rule under which their names are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import check_range
from ...text import NAME_RULE
from ..file.columns import RaggedStrings, string_arrays, string_column
from ..file.rows import all_rows, take_rows, take_strings
from ..file.sections import Arrays, ArraysOrSections, Sections, damage_of
from ..log.rows import DeltaRows, Places
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
    offsets, data = log.whole("alias.name.offsets"), log.whole("alias.name.bytes")
    rows, order = np.zeros(at.entities.size + 1, np.int64), all_rows(0)
    if len(offsets) > 1:
        entity, alive = log.aliases.rows(log.count, len(offsets) - 1)
        row = at.entity[entity]
        kept = np.flatnonzero((row >= 0) & alive)
        order = kept[np.argsort(row[kept], kind="stable")]
        np.cumsum(np.bincount(row[kept], minlength=at.entities.size), out=rows[1:])
    return {
        **_stated(log, at.entities),
        **build_rule(load_rule(log.sections)),
        **log.taken("entity.name", at.entities),
        "entity.alias.rows": rows,
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
