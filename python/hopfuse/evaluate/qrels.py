"""Relevance judgements for multi-hop questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_distinct, check_ids, check_length, check_list, check_whole, checked_texts, wrong_value
from ..errors import FormatError, InputError
from ..io.json_lines import json_objects
from ..io.qrels import read_qrels_file
from .passages import PassageNames


class RelevantPairs(NamedTuple):
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
    """Immutable relevance judgements; every field has an entry per query.

    Parameters
    ----------
    ids : sequence of str, B entries
        Distinct query ids; row b of evaluated hits belongs to ``ids[b]``.
    gold : sequence of sequences of int, B entries
        Relevant passage ids. Ranking metrics leave out a query that has none.
    hops : sequence of sequences of sequences of int, B entries, optional
        Gold passages of hop 1, hop 2, ...; an empty entry if the hops are not known.
    last_hop : sequence of sequences of int, B entries, optional
        Gold passages of the last hop; an empty entry leaves the query out of last-hop metrics.
    types : sequence of str, B entries, optional
        Question type; ``""`` if not known.
    grades : sequence of sequences of int, B entries, optional
        Grade of each gold passage, at least 1; by default 1. nDCG and :meth:`at_level` read it.
    questions : sequence of str, B entries, optional
        Text of the question; ``""`` if not known.
    answers : sequence of sequences of str, B entries, optional
        Accepted answers; an empty entry leaves the query out of answer metrics.

    Raises
    ------
    InputError
        Fields differ in length, query ids repeat, passage ids are negative, not integers or repeated, a hop passage is
        not gold, or a grade is below 1; the error names the query.

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
        check_distinct(names, "ids")
        count = len(names)
        right = _per_query("gold", gold, count, ())
        by_hop = _per_query("hops", hops, count, ())
        last = _per_query("last_hop", last_hop, count, ())
        graded = _per_query("grades", grades, count, None)
        accepted = _per_query("answers", answers, count, ())
        rows = [_of_query(*row) for row in zip(names, right, by_hop, last, graded, accepted, strict=True)]
        fields = {
            "ids": names,
            "gold": tuple(row[0] for row in rows),
            "hops": tuple(row[1] for row in rows),
            "last_hop": tuple(row[2] for row in rows),
            "types": tuple(str(t) for t in _per_query("types", types, count, "")),
            "grades": tuple(row[3] for row in rows),
            "questions": tuple(str(q) for q in _per_query("questions", questions, count, "")),
            "answers": tuple(row[4] for row in rows),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Qrels:
        """Make judgements from mappings with "id" and "gold".

        Optional keys: "hops", "last_hop", "type", "grades", "question", "answer" (a string or a list
        of strings) and "aliases" (further accepted answers).

        Raises
        ------
        InputError
            A record lacks "id" or "gold", or :class:`Qrels` refuses its contents.

        Examples
        --------
        >>> from hopfuse.evaluate import Qrels
        >>> Qrels.from_records([{"id": "a", "gold": [2], "type": "bridge"}]).types
        ('bridge',)
        """
        rows = list(records)
        for at, row in enumerate(rows):
            if "id" not in row or "gold" not in row:
                raise InputError(
                    "missing",
                    f"records[{at}]",
                    "{field} has the keys {given}; it needs 'id' and 'gold'",
                    given=sorted(row),
                )
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
        """Read judgements from a file with one JSON object per line (see :meth:`from_records`).

        Passage ids must be integers; :func:`read_qrels` also takes names. Other keys are ignored; blank
        lines are skipped.

        Raises
        ------
        FormatError
            A line is not a JSON object with the keys "id" and "gold", or :class:`Qrels` refuses its contents; the
            error names the file and the line or query.
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
            raise error.about(kind=FormatError).at(path) from None

    def take(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Qrels:
        """Return the judgements of some queries, in the order of ``rows`` (positions, or a mask of shape (B,)).

        Examples
        --------
        >>> from hopfuse.evaluate import Qrels
        >>> Qrels(["a", "b", "c"], [[1], [2], [3]]).take([2, 0]).ids
        ('c', 'a')
        """
        chosen = query_rows(rows, len(self)).tolist()
        names = ("ids", "gold", "hops", "last_hop", "types", "grades", "questions", "answers")
        return Qrels(**{name: [getattr(self, name)[row] for row in chosen] for name in names})

    def at_level(self, grade: int) -> Qrels:
        """Return the judgements in which only passages of at least this grade are gold.

        Examples
        --------
        >>> from hopfuse.evaluate import Qrels
        >>> Qrels(["a", "b"], [[1, 4], [2]], grades=[[1, 3], [1]]).at_level(2).gold
        ((4,), ())
        """
        least = check_whole(grade, "grade")
        kept = [
            {passage for passage, own in zip(gold, grades, strict=True) if own >= least}
            for gold, grades in zip(self.gold, self.grades, strict=True)
        ]
        fields: dict[str, Any] = {
            name: [[passage for passage in row if passage in own] for row, own in zip(rows, kept, strict=True)]
            for name, rows in (("gold", self.gold), ("last_hop", self.last_hop))
        }
        fields["hops"] = [
            [[passage for passage in hop if passage in own] for hop in hops]
            for hops, own in zip(self.hops, kept, strict=True)
        ]
        fields["grades"] = [[own for own in row if own >= least] for row in self.grades]
        return replace(self, **fields)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Qrels(queries={len(self)}, gold={self.gold_pairs.passage.size}, no_last_hop={self.num_without_last_hop})"
        )

    @cached_property
    def num_hops(self) -> NDArray[np.int64]:
        """Number of hops of each query, int64 of shape (B,); 0 if the hops are not known."""
        return _frozen([len(h) for h in self.hops])

    @property
    def num_without_last_hop(self) -> int:
        """Number of queries whose last hop is not known; last-hop metrics leave them out."""
        return sum(not passages for passages in self.last_hop)

    @cached_property
    def gold_pairs(self) -> RelevantPairs:
        """Every pair of query and gold passage, as flat arrays."""
        return _flatten(self.gold, self.grades)

    @cached_property
    def last_hop_pairs(self) -> RelevantPairs:
        """Every pair of query and last-hop passage, as flat arrays with grade 1."""
        return _flatten(self.last_hop, [(1,) * len(row) for row in self.last_hop])


def _per_query(name: str, values: Sequence[Any] | None, count: int, absent: Any) -> Sequence[Any]:
    if values is None:
        return (absent,) * count
    check_length(len(values), name, count, "query")
    return values


def _accepted(row: Mapping[str, Any]) -> Any:
    answer, aliases = row.get("answer"), row.get("aliases") or ()
    given = () if answer is None else (answer,) if isinstance(answer, str) else answer
    return (*given, *aliases) if isinstance(given, (list, tuple)) and isinstance(aliases, (list, tuple)) else given


def _flatten(rows: Sequence[Sequence[int]], grades: Sequence[Sequence[int]]) -> RelevantPairs:
    sizes = _frozen([len(row) for row in rows])
    query = _frozen(np.repeat(np.arange(len(rows), dtype=np.int64), sizes))
    return RelevantPairs(query, _frozen(list(chain(*rows))), sizes, _frozen(list(chain(*grades))))


def _frozen(values: Any) -> NDArray[np.int64]:
    array = np.asarray(values, dtype=np.int64)
    array.flags.writeable = False
    return array


Passages = tuple[int, ...]


def _of_query(
    name: str, gold: Any, hops: Any, last_hop: Any, grades: Any, answers: Any
) -> tuple[Passages, tuple[Passages, ...], Passages, tuple[int, ...], tuple[str, ...]]:
    """Return the gold passages of a query, those of each hop and of the last hop, the grades and the answers."""
    try:
        right = _passages("gold", gold)
        by_hop = tuple(_passages(f"hops[{at}]", hop) for at, hop in enumerate(check_list(hops, "hops")))
        last = _passages("last_hop", last_hop)
        for field, passages in (*((f"hops[{at}]", hop) for at, hop in enumerate(by_hop)), ("last_hop", last)):
            _check_gold(field, passages, right)
        texts = checked_texts(answers, "answers")
        return right, by_hop, last, _grades(grades, right), tuple(texts)
    except InputError as error:
        raise error.at(f"query {name!r}") from None


def _check_gold(field: str, passages: Passages, gold: Passages) -> None:
    strangers = set(passages) - set(gold)
    if strangers:
        raise InputError(
            "unknown",
            field,
            "{field} has passage {given}, which is not among the gold passages {allowed}",
            given=min(strangers),
            allowed=list(gold),
        )


def _grades(grades: Any, gold: Passages) -> tuple[int, ...]:
    """Return the grades of the gold passages, at least 1; all 1 if none are given."""
    if grades is None:
        return (1,) * len(gold)
    values = check_list(grades, "grades", "a list of integers")
    check_length(len(values), "grades", len(gold), "gold passage")
    return tuple(check_whole(value, f"grades[{at}]") for at, value in enumerate(values))


def _passages(field: str, values: Any) -> Passages:
    found = check_list(values, field, "a list of passage ids")
    passages = tuple(check_whole(value, f"{field}[{at}]", 2**63 - 1, least=0) for at, value in enumerate(found))
    check_distinct(passages, field)
    return passages


def read_qrels(path: str | PathLike[str], names: PassageNames, *, split: str = "test") -> Qrels:
    """Read judgements from a file or folder, whose suffix and first line decide its format.

    - ``.jsonl``: one object per line with "id" and "gold" (see :meth:`Qrels.from_records`); passages are
      strings or integers, and 7 is the same passage as "7".
    - a folder: BEIR's ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``.
    - a file whose first line is ``query-id  corpus-id  score``: a BEIR table by itself.
    - any other file: TREC qrels, ``query iteration passage grade``, separated by white space of ASCII. The
      iteration is ignored, as are blank lines and comments: ``#`` and a space, or another line that begins with ``#``
      and is not a judgement.

    Grades above 0 are relevant. A query whose grades are all 0 or less is kept, with no gold passage.

    Parameters
    ----------
    path : path
    names : PassageNames
        Numbers the passages. Pass the same object to :func:`read_run` to read runs for these judgements.
    split : str
        Split of a BEIR folder.

    Returns
    -------
    Qrels
        Queries in order of first occurrence.

    Raises
    ------
    FormatError
        A line is malformed, a pair is judged twice, or a BEIR table names a query or passage that its folder does not
        have; the error names file and line.
    InputError
        A folder has no table of that split.
    OSError
        The file cannot be read.

    References
    ----------
    TREC qrels: https://trec.nist.gov/data/qrels_eng/. BEIR: Thakur et al., NeurIPS (2021).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.evaluate import PassageNames, read_qrels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "qrels.txt")
    ...     _ = path.write_text("q1 0 docA 2\\nq1 0 docB 0\\nq2 0 docB 1\\n")
    ...     qrels = read_qrels(path, PassageNames())
    >>> qrels.ids, qrels.gold, qrels.grades
    (('q1', 'q2'), ((0,), (1,)), ((2,), (1,)))
    """
    file = read_qrels_file(path, split=split)
    for passage, title in file.titles.items():
        names.set_title(passage, title)
    rows = []
    for where, record in file.rows:
        row = {**record, "gold": list(map(names.number, record["gold"]))}
        row["last_hop"] = list(map(names.number, record.get("last_hop", ())))
        row["hops"] = [list(map(names.number, hop)) for hop in record.get("hops", ())]
        try:
            Qrels.from_records([row])
        except InputError as error:
            raise error.about(kind=FormatError).at(where) from None
        rows.append(row)
    return Qrels.from_records(rows)


def query_rows(rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Return the positions that ``rows``, positions or a mask, selects among ``count`` queries."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (count,):
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise wrong_value(rows, "rows", f"positions of queries, or a mask of shape ({count},)", "shape")
    check_ids(given, "rows", count)
    return given.astype(np.int64)
