"""A knowledge graph as triples of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ._ends import facts_by_end


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Triples:
    """Facts (head, relation, tail), and which of them each entity is an end of. Immutable.

    Parameters
    ----------
    rows : iterable of (str, str, str)
        Facts by name. One that is there twice counts once; the others keep their order.
    entities : sequence of str, optional
        Names in the order of their numbers: row i of the vectors is entity i. By default the ends of the facts, in the
        order in which they come.

    Attributes
    ----------
    entities, relations : tuple of str
        N and R names.
    rows : ndarray of int32, shape (T, 3)
        Numbers of head, relation and tail.
    indptr : ndarray of int64, shape (N + 1,)
    incident : ndarray of int32
        Entity e is an end of the facts ``incident[indptr[e]]`` .. ``incident[indptr[e + 1] - 1]``, ascending.

    Raises
    ------
    InputError
        A row that is not three strings, an end that ``entities`` lacks, an entity named twice.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.Triples([("Alien", "directed by", "Ridley Scott"), ("Blade Runner", "directed by", "Ridley Scott")])
    Triples(triples=2, entities=3, relations=1)
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    rows: NDArray[np.int32]
    indptr: NDArray[np.int64]
    incident: NDArray[np.int32]

    def __init__(self, rows: Iterable[Sequence[str]], entities: Sequence[str] | None = None) -> None:
        if isinstance(rows, str) or not isinstance(rows, Iterable):
            raise InputError(f"rows are a {type(rows).__name__}; pass a sequence of (head, relation, tail)")
        facts = list(dict.fromkeys(_row(at, row) for at, row in enumerate(rows)))
        ends = (name for head, _, tail in facts for name in (head, tail))
        number = _numbers(ends) if entities is None else _given(entities)
        relations = _numbers(relation for _, relation, _ in facts)
        for head, relation, tail in facts:
            for name in (head, tail):
                if name not in number:
                    raise InputError(f"{name!r} of ({head!r}, {relation!r}, {tail!r}) is not among the entities")
        numbered = [(number[head], relations[relation], number[tail]) for head, relation, tail in facts]
        array = np.array(numbered, np.int32).reshape(-1, 3)
        indptr, incident = facts_by_end(array, len(number))
        made = {"entities": tuple(number), "relations": tuple(relations), "rows": array}
        array.flags.writeable = False
        for name, value in (made | {"indptr": indptr, "incident": incident}).items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __repr__(self) -> str:
        return f"Triples(triples={len(self)}, entities={len(self.entities)}, relations={len(self.relations)})"


def _row(at: int, row: Any) -> tuple[str, str, str]:
    if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 3:
        raise InputError(f"row {at} is {row!r}; it must be (head, relation, tail)")
    if not all(isinstance(name, str) for name in row):
        raise InputError(f"row {at} is {row!r}; head, relation and tail must be strings")
    return row[0], row[1], row[2]


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: at for at, name in enumerate(dict.fromkeys(names))}


def _given(entities: Sequence[str]) -> dict[str, int]:
    entities = entities if isinstance(entities, str) or not isinstance(entities, Iterable) else tuple(entities)
    if not isinstance(entities, tuple) or not all(isinstance(name, str) for name in entities):
        raise InputError("entities must be a sequence of strings")
    number: dict[str, int] = {}
    for at, name in enumerate(entities):
        if number.setdefault(name, at) != at:
            raise InputError(f"entities {number[name]} and {at} are both {name!r}; names must be distinct")
    return number
