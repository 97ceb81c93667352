"""Filters of other frameworks as ``allow=``: a mapping if that can express them, since servers take no ``Where``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Literal

from ..index import Where, where

Filter = Mapping[str, Any] | Where


def condition(column: str, operator: str, value: Any) -> Filter:
    """Return a condition on a column. Missing values meet ``ne`` and ``nin``, as in the frameworks.

    Examples
    --------
    >>> condition("year", "ge", 2020)
    {'year__ge': 2020}
    >>> condition("year", "ne", 2020)
    ~where(year=2020)
    """
    if operator == "ne":
        return ~where(**{column: value})
    if operator == "nin":
        return ~where(**{f"{column}__in": value})
    return {f"{column}__{operator}": value}


def joined(parts: Sequence[Filter], how: Literal["and", "or"]) -> Filter:
    """Return the conjunction or the disjunction of filters, as a mapping if that can express it.

    Examples
    --------
    >>> joined([{"year__ge": 2020}, {"tenant__eq": "a"}], "and")
    {'year__ge': 2020, 'tenant__eq': 'a'}
    >>> joined([{"year__ge": 2020}, {"tenant__eq": "a"}], "or")
    (where(year__ge=2020) | where(tenant='a'))
    """
    mappings = [part for part in parts if isinstance(part, Mapping)]
    names = [name for part in mappings for name in part]
    if len(mappings) == len(parts) and (how == "and" or len(parts) == 1) and len(set(names)) == len(names):
        return {name: value for part in mappings for name, value in part.items()}
    return reduce(and_ if how == "and" else or_, map(as_where, parts))


def as_where(part: Filter) -> Where:
    """Return a filter as a Where."""
    return part if isinstance(part, Where) else where(**part)
