"""Entities: which of them a user stated, and the rule under which their names are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import check_range
from ...text import NAME_RULE
from ..file.columns import string_arrays
from ..file.sections import Section, damage_of
from . import words

Sections = Mapping[str, Section]
Arrays = dict[str, NDArray[Any]]


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
