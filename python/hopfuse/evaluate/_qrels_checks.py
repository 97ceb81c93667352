"""What judgements must be before they become :class:`Qrels`; every message names the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..errors import InputError

Passages = tuple[int, ...]


def check_distinct(names: Sequence[str]) -> None:
    """Refuse a query id that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"query id {name!r} occurs more than once; ids are distinct")
        seen.add(name)


def check_query(
    name: str, gold: Sequence[int], hops: Sequence[Sequence[int]], last_hop: Sequence[int]
) -> tuple[Passages, tuple[Passages, ...], Passages]:
    """Gold passages, those of each hop and those of the last hop, as tuples."""
    right = _passages(name, "gold", gold)
    by_hop = tuple(_passages(name, f"hop {at}", hop) for at, hop in enumerate(listed(name, "hops", hops), 1))
    last = _passages(name, "last_hop", last_hop)
    strangers = set(chain(last, *by_hop)) - set(right)
    if strangers:
        raise InputError(f"query {name!r}: hop passage {min(strangers)} is not among its gold passages {list(right)}")
    return right, by_hop, last


def check_grades(name: str, grades: Sequence[int] | None, gold: Passages) -> tuple[int, ...]:
    """A grade of at least 1 for every gold passage; 1 where none are given."""
    if grades is None:
        return (1,) * len(gold)
    values = listed(name, "grades", grades)
    if len(values) != len(gold):
        raise InputError(f"query {name!r} has {len(values)} grades for {len(gold)} gold passages; give one for each")
    for value in values:
        if not _is_integer(value) or value < 1:
            raise InputError(f"query {name!r}: grades has {value!r}; grades of gold passages are integers, at least 1")
    return tuple(int(value) for value in values)


def check_answers(name: str, answers: Sequence[str]) -> tuple[str, ...]:
    """Accepted answers as a tuple of strings."""
    values = listed(name, "answers", answers)
    for value in values:
        if not isinstance(value, str):
            raise InputError(f"query {name!r}: answers has {value!r}; an answer is a string")
    return tuple(values)


def listed(name: str, field: str, values: Any) -> list[Any]:
    """A list of what must be a list."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"query {name!r}: {field} is {values!r}; it must be a list")
    return list(values)


def _passages(name: str, field: str, values: Sequence[int]) -> Passages:
    found = listed(name, field, values)
    for value in found:
        if not _is_integer(value) or value < 0:
            raise InputError(f"query {name!r}: {field} has {value!r}; passage ids are integers, at least 0")
    passages = tuple(int(value) for value in found)
    if len(set(passages)) != len(passages):
        raise InputError(f"query {name!r}: {field} {list(passages)} repeats a passage; each is listed once")
    return passages


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
