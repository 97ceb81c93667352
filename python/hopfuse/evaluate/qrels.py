"""What the right passages are: relevance judgements for multi-hop questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError
from ._checks import chosen_rows
from ._qrels_checks import check_answers, check_distinct, check_grades, check_query
from .json_lines import json_objects


class JudgedPairs(NamedTuple):
    """Judgements as flat arrays: ``query[i]`` has the relevant passage ``passage[i]`` of grade ``grade[i]``.

    ``query``, ``passage`` and ``grade`` are int64 of shape (P,), ordered by query; ``sizes`` is int64 of
    shape (B,): the number of relevant passages of each query.
    """

    query: NDArray[np.int64]
    passage: NDArray[np.int64]
    sizes: NDArray[np.int64]
    grade: NDArray[np.int64]


@dataclass(frozen=True, init=False, repr=False)
class Qrels:
    """Relevance judgements, an entry per query in every field. Immutable.

    Parameters
    ----------
    ids : sequence of str, B entries
        Distinct query ids; row b of the hits that are judged belongs to ``ids[b]``.
    gold : sequence of sequences of int, B entries
        Relevant passage ids. A query with none is left out of every ranking metric.
    hops : sequence of sequences of sequences of int, B entries, optional
        Gold passages of hop 1, hop 2, ...; an empty entry where the hops are not known.
    last_hop : sequence of sequences of int, B entries, optional
        Gold passages of the last hop; an empty entry leaves the query out of last-hop metrics.
    types : sequence of str, B entries, optional
        Question type; ``""`` where not known.
    grades : sequence of sequences of int, B entries, optional
        Grade of each gold passage, at least 1; 1 where not given. Only nDCG reads it.
    questions : sequence of str, B entries, optional
        The question's text; ``""`` where not known.
    answers : sequence of sequences of str, B entries, optional
        Accepted answers; an empty entry leaves the query out of answer metrics.

    Raises
    ------
    InputError
        Fields of different lengths, repeated query ids, passage ids that are negative, not integers
        or repeated, a hop passage that is not gold, grades below 1; the message names the query.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels
    >>> q = Qrels(["a", "b"], gold=[[4, 7], [1]], hops=[[[4], [7]], []], last_hop=[[7], []])
    >>> len(q), q.num_hops.tolist(), q.num_without_last_hop
    (2, [2, 0], 1)
    """

    ids: tuple[str, ...]
    gold: tuple[tuple[int, ...], ...]
    hops: tuple[tuple[tuple[int, ...], ...], ...]
    last_hop: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    grades: tuple[tuple[int, ...], ...]
    questions: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]

    def __init__(
        self,
        ids: Sequence[str],
        gold: Sequence[Sequence[int]],
        hops: Sequence[Sequence[Sequence[int]]] | None = None,
        last_hop: Sequence[Sequence[int]] | None = None,
        types: Sequence[str] | None = None,
        grades: Sequence[Sequence[int] | None] | None = None,
        questions: Sequence[str] | None = None,
        answers: Sequence[Sequence[str]] | None = None,
    ) -> None:
        names = tuple(str(i) for i in ids)
        check_distinct(names)
        count = len(names)
        right = _per_query("gold", gold, count, ())
        by_hop = _per_query("hops", hops, count, ())
        last = _per_query("last_hop", last_hop, count, ())
        graded = _per_query("grades", grades, count, None)
        accepted = _per_query("answers", answers, count, ())
        rows = [check_query(*row) for row in zip(names, right, by_hop, last, strict=True)]
        fields = {
            "ids": names,
            "gold": tuple(row[0] for row in rows),
            "hops": tuple(row[1] for row in rows),
            "last_hop": tuple(row[2] for row in rows),
            "types": tuple(str(t) for t in _per_query("types", types, count, "")),
            "grades": tuple(check_grades(n, g, row[0]) for n, g, row in zip(names, graded, rows, strict=True)),
            "questions": tuple(str(q) for q in _per_query("questions", questions, count, "")),
            "answers": tuple(check_answers(n, a) for n, a in zip(names, accepted, strict=True)),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Qrels:
        """Judgements from mappings with "id" and "gold".

        Optional keys: "hops", "last_hop", "type", "grades", "question", "answer" (a string or a list
        of strings) and "aliases" (further accepted answers).

        Raises
        ------
        InputError
            A record without "id" or "gold", and all that :class:`Qrels` refuses.

        Examples
        --------
        >>> from hopfuse.evaluate import Qrels
        >>> Qrels.from_records([{"id": "a", "gold": [2], "type": "bridge"}]).types
        ('bridge',)
        """
        rows = list(records)
        for at, row in enumerate(rows):
            if "id" not in row or "gold" not in row:
                raise InputError(f"record {at} has the keys {sorted(row)}; 'id' and 'gold' are needed")
        return cls(
            [row["id"] for row in rows],
            [row["gold"] for row in rows],
            [row.get("hops", ()) for row in rows],
            [row.get("last_hop", ()) for row in rows],
            [row.get("type", "") for row in rows],
            [row.get("grades") for row in rows],
            [row.get("question", "") for row in rows],
            [_accepted(row) for row in rows],
        )

    @classmethod
    def read_jsonl(cls, path: str | PathLike[str]) -> Qrels:
        """Judgements from a file with one JSON object per line (see :meth:`from_records`).

        Passage ids are integers here; :func:`read_qrels` takes names too. Other keys are ignored; blank
        lines are skipped.

        Raises
        ------
        FormatError
            A line that is not a JSON object with the keys "id" and "gold", or contents that
            :class:`Qrels` refuses; the message names the file and the line or query.
        OSError
            The file cannot be read.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from hopfuse.evaluate import Qrels
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "queries.jsonl")
        ...     _ = path.write_text('{"id": "a", "gold": [0, 3], "hops": [[3], [0]], "last_hop": [0]}')
        ...     Qrels.read_jsonl(path).last_hop
        ((0,),)
        """
        records = [record for _, record in json_objects(path, ("id", "gold"))]
        try:
            return cls.from_records(records)
        except InputError as error:
            raise FormatError(f"{path}: {error}") from error

    def take(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Qrels:
        """The judgements of some queries, in the order of ``rows`` (positions, or a mask of shape (B,)).

        Examples
        --------
        >>> from hopfuse.evaluate import Qrels
        >>> Qrels(["a", "b", "c"], [[1], [2], [3]]).take([2, 0]).ids
        ('c', 'a')
        """
        chosen = chosen_rows(rows, len(self)).tolist()
        names = ("ids", "gold", "hops", "last_hop", "types", "grades", "questions", "answers")
        return Qrels(**{name: [getattr(self, name)[row] for row in chosen] for name in names})

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Qrels(queries={len(self)}, gold={self.gold_pairs.passage.size}, no_last_hop={self.num_without_last_hop})"
        )

    @cached_property
    def num_hops(self) -> NDArray[np.int64]:
        """Number of hops of each query, int64 of shape (B,); 0 where the hops are not known."""
        return _frozen([len(h) for h in self.hops])

    @property
    def num_without_last_hop(self) -> int:
        """Queries whose last hop is not known; last-hop metrics leave them out."""
        return sum(not passages for passages in self.last_hop)

    @cached_property
    def gold_pairs(self) -> JudgedPairs:
        """Every (query, gold passage) as flat arrays."""
        return _flatten(self.gold, self.grades)

    @cached_property
    def last_hop_pairs(self) -> JudgedPairs:
        """Every (query, last-hop passage) as flat arrays, of grade 1."""
        return _flatten(self.last_hop, [(1,) * len(row) for row in self.last_hop])


def _per_query(name: str, values: Sequence[Any] | None, count: int, absent: Any) -> Sequence[Any]:
    if values is None:
        return (absent,) * count
    if len(values) != count:
        raise InputError(f"{name} has {len(values)} entries for {count} query ids; give one per query")
    return values


def _accepted(row: Mapping[str, Any]) -> Any:
    answer, aliases = row.get("answer"), row.get("aliases") or ()
    given = () if answer is None else (answer,) if isinstance(answer, str) else answer
    return (*given, *aliases) if isinstance(given, (list, tuple)) and isinstance(aliases, (list, tuple)) else given


def _flatten(rows: Sequence[Sequence[int]], grades: Sequence[Sequence[int]]) -> JudgedPairs:
    sizes = _frozen([len(row) for row in rows])
    query = _frozen(np.repeat(np.arange(len(rows), dtype=np.int64), sizes))
    return JudgedPairs(query, _frozen(list(chain(*rows))), sizes, _frozen(list(chain(*grades))))


def _frozen(values: Any) -> NDArray[np.int64]:
    array = np.asarray(values, dtype=np.int64)
    array.flags.writeable = False
    return array
