"""Facts: triples of entities, with the passages that state them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ._ends import facts_by_end
from ._rows import ascends, checked_count
from .arrays import to_numpy
from .fact_rows import checked, merged, numbered, strings

MOST = int(np.iinfo(np.int32).max)
"""The most facts, entities, passages or statements: int32 numbers them."""


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """Facts (head, relation, tail), each once, and the passages that state each. Immutable.

    Checked when it is made, in one pass. An :class:`hopfuse.Index` keeps it; make it by name with :meth:`from_names`.

    Parameters
    ----------
    rows : array_like of int, shape (F, 3)
        Head (an entity), relation, tail (an entity); no two the same.
    relations : sequence of str, R entries
        Distinct, in the order in which the facts first have them; each is used.
    indptr : array_like of int, shape (F + 1,)
        Fact f is stated by ``passages[indptr[f]]`` .. ``passages[indptr[f + 1] - 1]``, at least one.
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
        Entity e is an end of the facts ``incident[incident_indptr[e]]`` .. ``incident[incident_indptr[e + 1] - 1]``,
        ascending; a fact from an entity to itself stands there once.

    Raises
    ------
    InputError
        Anything that is not as above.

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
            object.__setattr__(self, name, checked_count(getattr(self, name), name, MOST))
        rows = _integers(self.rows, "rows", (3,))
        indptr, passages = _integers(self.indptr, "indptr", most=MOST + 1), _integers(self.passages, "passages")
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
        """Facts of names and passage numbers, in the order in which they are first stated.

        A triple that several rows have is one fact, stated by all their passages.

        Parameters
        ----------
        rows : iterable of (str, str, str, int)
            Head, relation, tail, passage 0 .. P-1.
        entities : sequence of str, E names
            In the order of their numbers; names match exactly. One may stand there twice (an index allows it), as long
            as no fact uses it: nothing says which of the two is meant.
        num_passages : int
            P.

        Raises
        ------
        InputError
            A row that is not as above, a name that ``entities`` lacks or has twice, a passage that is not there.

        Examples
        --------
        >>> import hopfuse as hf
        >>> rows = [("Ada", "wrote", "Notes", 0), ("Ada", "born in", "London", 1), ("Ada", "wrote", "Notes", 1)]
        >>> facts = hf.Facts.from_names(rows, ["Ada", "London", "Notes"], num_passages=2)
        >>> facts.relations, facts.rows.tolist(), facts.indptr.tolist(), facts.passages.tolist()
        (('wrote', 'born in'), [[0, 0, 2], [0, 1, 1]], [0, 2, 3], [0, 1, 1])
        """
        names, limit = strings(entities, "entities"), checked_count(num_passages, "num_passages", MOST)
        made = merged(numbered(checked(rows, limit), names))
        return cls(*made, num_entities=len(names), num_passages=limit)

    @classmethod
    def from_numbers(cls, rows: Iterable[Sequence[Any]], num_entities: int, num_passages: int) -> Facts:
        """The same of rows (int, str, int, int): head and tail are entities 0 .. E-1.

        Raises
        ------
        InputError
            A row that is not so, an entity or a passage that is not there.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Facts.from_numbers([(0, "wrote", 1, 0), (0, "wrote", 1, 2)], num_entities=2, num_passages=3)
        Facts(facts=1, relations=1, statements=2, entities=2, passages=3)
        """
        entities, limit = (
            checked_count(num_entities, "num_entities", MOST),
            checked_count(num_passages, "num_passages", MOST),
        )
        return cls(*merged(checked(rows, limit, entities)), num_entities=entities, num_passages=limit)

    def texts(self, entities: Sequence[str]) -> list[str]:
        """Each fact as the words "head relation tail": what a fact's vector is of.

        Parameters
        ----------
        entities : sequence of str, E names
            In the order of their numbers, as ``index.entity_names`` has them.

        Returns
        -------
        list of str, F entries

        Raises
        ------
        InputError
            Names that are not strings, or not one for each entity.

        Examples
        --------
        >>> import hopfuse as hf
        >>> names = ["Ada", "London", "Notes"]
        >>> hf.Facts.from_names([("Ada", "wrote", "Notes", 0), ("Ada", "born in", "London", 1)], names, 2).texts(names)
        ['Ada wrote Notes', 'Ada born in London']
        """
        names = strings(entities, "entities")
        if len(names) != self.num_entities:
            raise InputError(
                f"entities has {len(names)} names; the facts are of {self.num_entities}: give one for each"
            )
        return [f"{names[head]} {self.relations[kind]} {names[tail]}" for head, kind, tail in self.rows.tolist()]

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __repr__(self) -> str:
        return (
            f"Facts(facts={len(self)}, relations={len(self.relations)}, statements={self.passages.size}, "
            f"entities={self.num_entities}, passages={self.num_passages})"
        )


def _integers(given: Any, name: str, columns: tuple[int, ...] = (), most: int = MOST) -> NDArray[Any]:
    array = to_numpy(given, name)
    array = np.zeros((0, *columns), np.int64) if array.size == 0 and array.ndim == 1 else array
    if array.dtype.kind not in "iu" or array.shape[1:] != columns or array.ndim == 0:
        shape = "(F, 3)" if columns else "(n,)"
        raise InputError(f"{name} is {array.dtype}{array.shape}; it must be integers of shape {shape}")
    if array.shape[0] > most:
        raise InputError(f"{name} has {array.shape[0]} entries; at most {most} are allowed")
    return array


def _relations(given: Any) -> tuple[str, ...]:
    names = strings(given, "relations")
    first: dict[str, int] = {}
    for at, name in enumerate(names):
        if first.setdefault(name, at) != at:
            raise InputError(f"relations {first[name]} and {at} are both {name!r}; names must be distinct")
    return names


def _check_rows(rows: NDArray[Any], relations: tuple[str, ...], num_entities: int) -> None:
    ends, kinds = rows[:, ::2], rows[:, 1]
    if ends.size and (ends.min() < 0 or ends.max() >= num_entities):
        raise InputError(f"rows holds an entity outside 0 .. {num_entities - 1}")
    if kinds.size and (kinds.min() < 0 or kinds.max() >= len(relations)):
        raise InputError(f"rows holds a relation outside 0 .. {len(relations) - 1}")
    seen = np.maximum.accumulate(np.concatenate([[-1], kinds.astype(np.int64)]))
    if (kinds > seen[:-1] + 1).any() or seen[-1] != len(relations) - 1:
        raise InputError("relations are not those of the facts in the order of their first use")
    order = np.lexsort(rows.T)
    same = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    if same.any():
        at = int(np.flatnonzero(same)[0])
        raise InputError(f"facts {order[at]} and {order[at + 1]} are both {rows[order[at]].tolist()}; give each once")


def _check_statements(indptr: NDArray[Any], passages: NDArray[Any], facts: int, num_passages: int) -> None:
    if indptr.size != facts + 1 or indptr[0] != 0 or indptr[-1] != passages.size:
        raise InputError(f"indptr has {indptr.size} entries; it must be {facts + 1}, from 0 to {passages.size}")
    if (indptr[1:] <= indptr[:-1]).any():
        raise InputError("indptr does not ascend strictly; each fact is stated by at least one passage")
    if passages.size and (passages.min() < 0 or passages.max() >= num_passages):
        raise InputError(f"passages holds a row outside 0 .. {num_passages - 1}")
    if not ascends(passages, indptr):
        raise InputError("passages do not ascend within a fact")
