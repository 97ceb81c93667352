"""From facts by name to facts by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


class Numbered(NamedTuple):
    """What :class:`hopfuse.Facts` is made of, in its order."""

    rows: NDArray[np.int32]
    relations: tuple[str, ...]
    indptr: NDArray[np.int64]
    passages: NDArray[np.int32]


def named_facts(rows: Iterable[Sequence[Any]], entities: Sequence[str], num_passages: int) -> Numbered:
    """Each triple once, in the order in which rows first have it, with the passages of all its rows.

    Raises
    ------
    InputError
        A row that is no (str, str, str, int), a name that ``entities`` lacks or has twice, a passage that is not there.
    """
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError(f"rows are a {type(rows).__name__}; pass a sequence of (head, relation, tail, passage)")
    first: dict[str, int] = {}
    repeated = {name for at, name in enumerate(entities) if first.setdefault(name, at) != at}
    relations: dict[str, int] = {}
    stated: dict[tuple[int, int, int], set[int]] = {}
    for at, row in enumerate(rows):
        head, relation, tail, passage = _row(at, row, num_passages)
        for name in (head, tail):
            if name not in first:
                raise InputError(f"{name!r} of row {at}, {tuple(row)!r}, is not among the entities")
            if name in repeated:
                raise InputError(f"{name!r} of row {at}, {tuple(row)!r}, is the name of several entities")
        fact = (first[head], relations.setdefault(relation, len(relations)), first[tail])
        stated.setdefault(fact, set()).add(passage)
    return Numbered(
        np.array(list(stated), np.int32).reshape(-1, 3),
        tuple(relations),
        np.cumsum([0, *map(len, stated.values())], dtype=np.int64),
        np.array([passage for passages in stated.values() for passage in sorted(passages)], np.int32),
    )


def strings(given: Any, what: str) -> tuple[str, ...]:
    """A sequence of strings; one string is none."""
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be a sequence of strings")
    return names


def _row(at: int, row: Any, num_passages: int) -> tuple[str, str, str, int]:
    if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 4:
        raise InputError(f"row {at} is {row!r}; it must be (head, relation, tail, passage)")
    head, relation, tail, passage = row
    if not all(isinstance(name, str) for name in (head, relation, tail)):
        raise InputError(f"row {at} is {row!r}; head, relation and tail must be strings")
    whole = isinstance(passage, int | np.integer) and not isinstance(passage, bool)
    if not whole or not 0 <= passage < num_passages:
        raise InputError(f"row {at} is {row!r}; its passage must be an integer 0 .. {num_passages - 1}")
    return head, relation, tail, int(passage)
