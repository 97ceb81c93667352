"""From statements, a row each, to facts by number: names become numbers, and what several rows state becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


class Merged(NamedTuple):
    """What :class:`hopfuse.Facts` is made of, in its order."""

    rows: NDArray[np.int32]
    relations: tuple[str, ...]
    indptr: NDArray[np.int64]
    passages: NDArray[np.int32]


def strings(given: Any, what: str) -> tuple[str, ...]:
    """A sequence of strings; one string is none."""
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be a sequence of strings")
    return names


def checked(rows: Any, num_passages: int, num_entities: int | None = None) -> Iterator[tuple[Any, str, Any, int]]:
    """The rows (head, relation, tail, passage), each one checked; ends are names where there is no ``num_entities``."""
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError(f"rows are a {type(rows).__name__}; pass a sequence of (head, relation, tail, passage)")
    for at, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 4:
            raise InputError(f"row {at} is {row!r}; it must be (head, relation, tail, passage)")
        head, relation, tail, passage = row
        if not isinstance(relation, str):
            raise InputError(f"row {at} is {row!r}; its relation must be a string")
        for end in (head, tail):
            if num_entities is None and not isinstance(end, str):
                raise InputError(f"row {at} is {row!r}; head and tail must be strings")
            if num_entities is not None and not _is_below(num_entities, end):
                raise InputError(f"row {at} is {row!r}; head and tail must be integers 0 .. {num_entities - 1}")
        if not _is_below(num_passages, passage):
            raise InputError(f"row {at} is {row!r}; its passage must be an integer 0 .. {num_passages - 1}")
        yield head, relation, tail, int(passage)


def numbered(
    rows: Iterable[tuple[str, str, str, int]], entities: Sequence[str], where: Callable[[int], str] = "row {}".format
) -> Iterator[tuple[int, str, int, int]]:
    """The rows with the numbers of their heads and tails; ``where`` says what an error calls a row.

    Raises
    ------
    InputError
        A name that ``entities`` lacks, or has twice.
    """
    number: dict[str, int] = {}
    repeated = {name for at, name in enumerate(entities) if number.setdefault(name, at) != at}
    for at, (head, relation, tail, passage) in enumerate(rows):
        for name in (head, tail):
            if name not in number or name in repeated:
                wrong = (
                    "the name of several entities"
                    if name in repeated
                    else "not the name of an entity, letter by letter"
                )
                raise InputError(f"{name!r} of {where(at)}, {(head, relation, tail, passage)!r}, is {wrong}")
        yield number[head], relation, number[tail], passage


def merged(rows: Iterable[tuple[int, str, int, int]]) -> Merged:
    """Each triple once, in the order in which rows first have it, with the passages of all its rows."""
    relations: dict[str, int] = {}
    stated: dict[tuple[int, int, int], set[int]] = {}
    for head, relation, tail, passage in rows:
        fact = (int(head), relations.setdefault(relation, len(relations)), int(tail))
        stated.setdefault(fact, set()).add(passage)
    return Merged(
        np.array(list(stated), np.int32).reshape(-1, 3),
        tuple(relations),
        np.cumsum([0, *map(len, stated.values())], dtype=np.int64),
        np.array([passage for passages in stated.values() for passage in sorted(passages)], np.int32),
    )


def _is_below(limit: int, value: Any) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and 0 <= int(value) < limit
