"""Entities: which of them a user stated, and the rule under which their names are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import check_range
from ...text import NAME_RULE
from ..file.sections import Section, damage_of
from .words import load_rule

Sections = Mapping[str, Section]
Arrays = dict[str, NDArray[Any]]


def stated_arrays(stated: NDArray[Any]) -> Arrays:
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


def name_rule_arrays(rule: int = NAME_RULE) -> Arrays:
    """Return the section ``entity.rule``."""
    return {"entity.rule": np.array([rule], np.int64)}


def load_name_rule(sections: Sections) -> int:
    """Return the number of the rule under which names are read."""
    return load_rule(sections, "entity.rule", "names", NAME_RULE)
