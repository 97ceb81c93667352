"""Facts: (head, relation, tail) triples, with the passages that state them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._arrays.rows import check_ascending, check_range, indptr_of
from .._validation import (
    check_length,
    check_list,
    check_type,
    check_whole,
    checked_texts,
    is_whole,
    wrong_array,
    wrong_value,
)
from ..errors import InputError

MAX_COUNT = int(np.iinfo(np.int32).max)
"""The most facts, entities, passages or statements: their numbers are int32."""


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """Distinct facts (head, relation, tail) and the passages that state each. Immutable.

    Build it from names with :meth:`from_names`; an :class:`hopfuse.Index` stores it.

    Parameters
    ----------
    rows : array_like of int, shape (F, 3)
        Head entity, relation and tail entity; rows are distinct.
    relations : sequence of str, R entries
        Distinct names, in order of first use; each is used.
    indptr : array_like of int, shape (F + 1,)
        Fact f is stated by ``passages[indptr[f] : indptr[f + 1]]``, at least one passage.
    passages : array_like of int, shape (Q,)
        0 .. num_passages - 1, ascending within a fact. Contiguous, aligned arrays of the dtypes below are referenced,
        not copied (they may be memory-mapped): do not change them. F and Q are at most 2³¹ - 1.
    num_entities, num_passages : int
        E and P.

    Attributes
    ----------
    rows : ndarray of int32, shape (F, 3)
    relations : tuple of str
    indptr : ndarray of int64, shape (F + 1,)
    passages : ndarray of int32, shape (Q,)
    incident_indptr : ndarray of int64, shape (E + 1,)
    incident : ndarray of int32
        Entity e is the head or tail of the facts ``incident[incident_indptr[e] : incident_indptr[e + 1]]``,
        ascending; a fact from an entity to itself is listed once.

    Raises
    ------
    InputError
        Any of the above does not hold.

    Examples
    --------
    >>> import hopfuse as hf
    >>> facts = hf.Facts([[0, 0, 1]], ["wrote"], [0, 2], [3, 5], num_entities=2, num_passages=6)
    >>> facts
    Facts(facts=1, relations=1, statements=2, entities=2, passages=6)
    >>> facts.passages[facts.indptr[0] : facts.indptr[1]]
    array([3, 5], dtype=int32)
    """

    rows: NDArray[np.int32]
    relations: Sequence[str]
    indptr: NDArray[np.int64]
    passages: NDArray[np.int32]
    num_entities: int = field(kw_only=True)
    num_passages: int = field(kw_only=True)
    incident_indptr: NDArray[np.int64] = field(init=False)
    incident: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("num_entities", "num_passages"):
            object.__setattr__(self, name, check_whole(getattr(self, name), name, MAX_COUNT, least=0))
        rows = _integers(self.rows, "rows", (3,))
        indptr, passages = _integers(self.indptr, "indptr", most=MAX_COUNT + 1), _integers(self.passages, "passages")
        relations = _relations(self.relations)
        _check_rows(rows, relations, self.num_entities)
        _check_statements(indptr, passages, len(rows), self.num_passages)
        owned = {"rows": (rows, np.int32), "indptr": (indptr, np.int64), "passages": (passages, np.int32)}
        for name, (array, dtype) in owned.items():
            kept = np.require(array, dtype, ("C", "A")).view()
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)
        incident_indptr, incident = facts_by_end(self.rows, self.num_entities)
        for name, value in (("relations", relations), ("incident_indptr", incident_indptr), ("incident", incident)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_names(cls, rows: Iterable[Sequence[Any]], entities: Sequence[str], num_passages: int) -> Facts:
        """Build facts from names and passage numbers, in order of first statement.

        Rows with the same triple become one fact, stated by all their passages.

        Parameters
        ----------
        rows : iterable of (str, str, str, int)
            Head, relation, tail, passage 0 .. P-1.
        entities : sequence of str, E names
            Entity e has the name ``entities[e]``; names match exactly. A name may occur twice (an index allows it) if
            no fact uses it, because it would be ambiguous.
        num_passages : int
            P.

        Raises
        ------
        InputError
            A row of another form, a name that is not in ``entities`` or occurs there twice, a passage out of range.

        Examples
        --------
        >>> import hopfuse as hf
        >>> rows = [("Ada", "wrote", "Notes", 0), ("Ada", "born in", "London", 1), ("Ada", "wrote", "Notes", 1)]
        >>> facts = hf.Facts.from_names(rows, ["Ada", "London", "Notes"], num_passages=2)
        >>> facts.relations, facts.rows.tolist(), facts.indptr.tolist(), facts.passages.tolist()
        (('wrote', 'born in'), [[0, 0, 2], [0, 1, 1]], [0, 2, 3], [0, 1, 1])
        """
        names = checked_texts(entities, "entities")
        limit = check_whole(num_passages, "num_passages", MAX_COUNT, least=0)
        made = merged(numbered(_checked(rows, limit), names))
        return cls(*made, num_entities=len(names), num_passages=limit)

    @classmethod
    def from_numbers(cls, rows: Iterable[Sequence[Any]], num_entities: int, num_passages: int) -> Facts:
        """Build facts from rows (int, str, int, int), whose head and tail are entity numbers 0 .. E-1.

        Raises
        ------
        InputError
            A row of another form, an entity or a passage out of range.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Facts.from_numbers([(0, "wrote", 1, 0), (0, "wrote", 1, 2)], num_entities=2, num_passages=3)
        Facts(facts=1, relations=1, statements=2, entities=2, passages=3)
        """
        entities = check_whole(num_entities, "num_entities", MAX_COUNT, least=0)
        limit = check_whole(num_passages, "num_passages", MAX_COUNT, least=0)
        return cls(*merged(_checked(rows, limit, entities)), num_entities=entities, num_passages=limit)

    def texts(self, entities: Sequence[str]) -> list[str]:
        """Return each fact as the text "head relation tail", which encoders turn into the fact's vector.

        Parameters
        ----------
        entities : sequence of str, E names
            Entity e has the name ``entities[e]``, as in ``index.entity_names``.

        Returns
        -------
        list of str, F entries

        Raises
        ------
        InputError
            Names that are not strings, or not one per entity.

        Examples
        --------
        >>> import hopfuse as hf
        >>> names = ["Ada", "London", "Notes"]
        >>> hf.Facts.from_names([("Ada", "wrote", "Notes", 0), ("Ada", "born in", "London", 1)], names, 2).texts(names)
        ['Ada wrote Notes', 'Ada born in London']
        """
        names = checked_texts(entities, "entities")
        check_length(len(names), "entities", self.num_entities, "entity")
        return [f"{names[head]} {self.relations[kind]} {names[tail]}" for head, kind, tail in self.rows.tolist()]

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __repr__(self) -> str:
        return (
            f"Facts(facts={len(self)}, relations={len(self.relations)}, statements={self.passages.size}, "
            f"entities={self.num_entities}, passages={self.num_passages})"
        )


class MergedFacts(NamedTuple):
    """The positional arguments of :class:`hopfuse.Facts`."""

    rows: NDArray[np.int32]
    relations: tuple[str, ...]
    indptr: NDArray[np.int64]
    passages: NDArray[np.int32]


def _checked(rows: Any, num_passages: int, num_entities: int | None = None) -> Iterator[tuple[Any, str, Any, int]]:
    """Check rows of (head, relation, tail, passage); head and tail are names if ``num_entities`` is None."""
    form = "(head, relation, tail, passage)"
    if not isinstance(rows, Iterator):
        rows = check_list(rows, "rows", f"a list of {form}")
    for at, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 4:
            raise wrong_value(row, f"rows[{at}]", form, "shape")
        head, relation, tail, passage = row
        for place, end in ((0, head), (2, tail)):
            if num_entities is None:
                if not isinstance(end, str):
                    check_type(end, f"rows[{at}][{place}]", str, "a string, the name of an entity")
            elif not (is_whole(end) and 0 <= end < num_entities):
                check_whole(end, f"rows[{at}][{place}]", num_entities - 1, least=0)
        if not isinstance(relation, str):
            check_type(relation, f"rows[{at}][1]", str, "a string, the relation")
        if not (is_whole(passage) and 0 <= passage < num_passages):
            check_whole(passage, f"rows[{at}][3]", num_passages - 1, least=0)
        yield head, relation, tail, int(passage)


def numbered(
    rows: Iterable[tuple[str, str, str, int]], entities: Sequence[str], where: Callable[[int], str] = "rows[{}]".format
) -> Iterator[tuple[int, str, int, int]]:
    """Replace names of heads and tails by entity numbers; ``where`` formats a row's number for an error message.

    Raises
    ------
    InputError
        A name that is not in ``entities``, or occurs there twice.
    """
    number: dict[str, int] = {}
    repeated = {name for at, name in enumerate(entities) if number.setdefault(name, at) != at}
    for at, (head, relation, tail, passage) in enumerate(rows):
        for name in (head, tail):
            if name not in number or name in repeated:
                raise InputError(
                    "duplicate" if name in repeated else "unknown",
                    "entities",
                    "{given!r} is the name of {count} entities; heads and tails are exact names of one",
                    given=name,
                    count="several" if name in repeated else "no",
                ).at(where(at))
        yield number[head], relation, number[tail], passage


def merged(rows: Iterable[tuple[int, str, int, int]]) -> MergedFacts:
    """Merge rows that state the same triple; facts keep the order of their first rows."""
    relations: dict[str, int] = {}
    stated: dict[tuple[int, int, int], set[int]] = {}
    for head, relation, tail, passage in rows:
        fact = (int(head), relations.setdefault(relation, len(relations)), int(tail))
        stated.setdefault(fact, set()).add(passage)
    return MergedFacts(
        np.array(list(stated), np.int32).reshape(-1, 3),
        tuple(relations),
        np.cumsum([0, *map(len, stated.values())], dtype=np.int64),
        np.array([passage for passages in stated.values() for passage in sorted(passages)], np.int32),
    )


def facts_by_end(rows: NDArray[np.int32], entities: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the facts of each entity as read-only CSR; a fact from an entity to itself is listed once."""
    fact = np.arange(rows.shape[0], dtype=np.int32)
    other = rows[:, 0] != rows[:, 2]
    end, at = np.concatenate([rows[:, 0], rows[other, 2]]), np.concatenate([fact, fact[other]])
    indptr = indptr_of(end, entities)
    incident = at[np.lexsort((at, end))]
    for made in (indptr, incident):
        made.flags.writeable = False
    return indptr, incident


def _integers(given: Any, name: str, columns: tuple[int, ...] = (), most: int = MAX_COUNT) -> NDArray[Any]:
    array = to_numpy(given, name)
    array = np.zeros((0, *columns), np.int64) if array.size == 0 and array.ndim == 1 else array
    if array.dtype.kind not in "iu" or array.shape[1:] != columns or array.ndim == 0:
        raise wrong_array(array, name, f"integers of shape {'(F, 3)' if columns else '(n,)'}")
    if array.shape[0] > most:
        raise InputError(
            "limit", name, "{field} has {given} entries; at most {allowed} are allowed", given=len(array), allowed=most
        )
    return array


def _relations(given: Any) -> tuple[str, ...]:
    names = tuple(checked_texts(given, "relations"))
    first: dict[str, int] = {}
    for at, name in enumerate(names):
        if first.setdefault(name, at) != at:
            raise InputError(
                "duplicate",
                "relations",
                "{field}[{first}] and {field}[{second}] are both {given!r}; names must be distinct",
                first=first[name],
                second=at,
                given=name,
            )
    return names


def _check_rows(rows: NDArray[Any], relations: tuple[str, ...], num_entities: int) -> None:
    ends, kinds = rows[:, ::2], rows[:, 1]
    if ends.size and (ends.min() < 0 or ends.max() >= num_entities):
        raise InputError("range", "rows", "{field} holds an entity outside 0 .. {last}", last=num_entities - 1)
    if kinds.size and (kinds.min() < 0 or kinds.max() >= len(relations)):
        raise InputError("range", "rows", "{field} holds a relation outside 0 .. {last}", last=len(relations) - 1)
    seen = np.maximum.accumulate(np.concatenate([[-1], kinds.astype(np.int64)]))
    if (kinds > seen[:-1] + 1).any() or seen[-1] != len(relations) - 1:
        raise InputError(
            "order", "relations", "{field} must list the facts' relations in order of first use, without unused ones"
        )
    order = np.lexsort(rows.T)
    same = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    if same.any():
        at = int(np.flatnonzero(same)[0])
        raise InputError(
            "duplicate",
            "rows",
            "{field}[{first}] and {field}[{second}] are both {given}; give each fact once",
            first=int(order[at]),
            second=int(order[at + 1]),
            given=rows[order[at]].tolist(),
        )


def _check_statements(indptr: NDArray[Any], passages: NDArray[Any], facts: int, num_passages: int) -> None:
    if indptr.size != facts + 1 or indptr[0] != 0 or indptr[-1] != passages.size:
        raise InputError(
            "length",
            "indptr",
            "{field} has {given} entries; it must have {allowed}, from 0 to {end}",
            given=indptr.size,
            allowed=facts + 1,
            end=passages.size,
        )
    if (indptr[1:] <= indptr[:-1]).any():
        raise InputError(
            "order", "indptr", "{field} does not ascend strictly; each fact is stated by at least one passage"
        )
    check_range(passages, "passages", num_passages)
    check_ascending(passages, "passages", indptr)
