"""Read and write runs: TREC files, and the files of ``hopfuse score``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FLOAT32_MAX, is_real
from ..errors import FormatError, HopfuseError, InputError
from .json_lines import decoded, json_objects, line_blocks, numbered_lines, parse_line
from .parquet import open_parquet, read_groups, rows_of
from .qrels import is_id, is_iteration, trec_name, wrong_fields

Name = TypeVar("Name", str, bytes)


class Numbers(dict[Name, int]):
    """Numbers of names, in order of first occurrence: ``numbers[name]`` gives a new name the next one.

    Examples
    --------
    >>> numbers = Numbers[str]()
    >>> [numbers[name] for name in ("b", "a", "b")], numbers.names
    ([0, 1, 0], ['b', 'a'])
    """

    def __init__(self) -> None:
        self.names: list[Name] = []

    def __missing__(self, name: Name) -> int:
        number = self[name] = len(self.names)
        self.names.append(name)
        return number


class Rankings(NamedTuple):
    """The passages and scores of many queries, best first, query after query.

    ``sizes`` has the number of passages of each query, and ``passages`` and ``scores`` have them for all queries.
    ``answers`` and ``notes`` have a query's answer and the first of its notes, if it has any.
    """

    queries: list[str]
    sizes: list[int]
    passages: list[str]
    scores: list[float]
    answers: dict[str, str]
    notes: dict[str, str]

    def twice(self) -> tuple[str, str] | None:
        """Return a query and a passage that it has twice, if there is one."""
        for query, (first, end) in zip(self.queries, pairwise(accumulate(self.sizes, initial=0)), strict=True):
            row = self.passages[first:end]
            if len(set(row)) < len(row):
                return query, next(passage for passage, times in Counter(row).items() if times > 1)
        return None


def ranked(
    queries: Sequence[str],
    row: NDArray[np.int64],
    passages: list[str],
    scores: NDArray[np.float64],
    ranks: NDArray[np.float64] | None = None,
    answers: Mapping[str, str] = MappingProxyType({}),
    notes: Mapping[str, str] = MappingProxyType({}),
) -> Rankings:
    """Return the passages of each query in the order of scores, higher first, then of ranks, then as given.

    Parameters
    ----------
    queries : sequence of str, Q entries
    row : ndarray of int64, shape (Z,)
        The query of each hit, from 0.
    passages : list of str, Z entries
    scores, ranks : ndarray of float64, shape (Z,)

    Examples
    --------
    >>> import numpy as np
    >>> ranked(["q1"], np.array([0, 0]), ["docB", "docA"], np.array([0.5, 0.75])).passages
    ['docA', 'docB']
    """
    tied = scores[1:] == scores[:-1]
    ordered = (scores[1:] < scores[:-1]) | (tied if ranks is None else tied & (ranks[1:] >= ranks[:-1]))
    if not ((row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & ordered)).all():
        keys = (-scores, row) if ranks is None else (ranks, -scores, row)
        order = np.lexsort(keys)
        passages, scores = list(map(passages.__getitem__, order.tolist())), scores[order]
    sizes = np.bincount(row, minlength=len(queries)).tolist()
    return Rankings(list(queries), sizes, passages, scores.tolist(), dict(answers), dict(notes))


def read_run_file(path: str | PathLike[str]) -> Rankings:
    """Read the rankings of a run file; the suffix determines the format.

    Formats and errors are as for :func:`hopfuse.evaluate.read_run`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.txt")
    ...     _ = path.write_text("q1 Q0 docA 1 12.5 bm25\\nq1 Q0 docB 2 9.0 bm25\\n")
    ...     read_run_file(path)[:4]
    (['q1'], [2], ['docA', 'docB'], [12.5, 9.0])
    """
    place = Path(path)
    if place.suffix == ".jsonl":
        return _from_objects((f"{place}, line {at}", row) for at, row in json_objects(place, ("id", "hits")))
    if place.suffix == ".parquet":
        return _from_objects((f"{place}, row {at}", row) for at, row in enumerate(_parquet(place)))
    return _from_json(place) if place.suffix == ".json" else _from_trec(place)


def run_lines(scores: Mapping[str, Mapping[str, float]], tag: str = "hopfuse") -> str:
    """Return a run (scores by query and passage, best first) as the text of a TREC file; scores have full precision.

    Raises
    ------
    InputError
        A name is empty or contains white space, which the format cannot represent.

    Examples
    --------
    >>> run_lines({"q1": {"docA": 12.5}})
    'q1 Q0 docA 1 12.5 hopfuse\\n'
    """
    lines = [
        f"{trec_name(query)} Q0 {trec_name(passage)} {rank} {score!r} {trec_name(tag)}\n"
        for query, row in scores.items()
        for rank, (passage, score) in enumerate(row.items(), 1)
    ]
    return "".join(lines)


def _from_trec(path: Path) -> Rankings:
    """Read a TREC run, block by block, by columns."""
    numbers, queries, passages = Numbers[bytes](), list[str](), list[str]()
    scores, ranks = list[float](), list[bytes]()
    rows, lines = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for first, block in line_blocks(path):
        at, fields = _fields(block, first, path)
        try:
            scores += map(float, fields[4])
            passages += map(bytes.decode, fields[2])
            rows.append(np.fromiter(map(numbers.__getitem__, fields[0]), np.int64, at.size))
            queries += map(bytes.decode, numbers.names[len(queries) :])
        except ValueError:
            for line, *one in zip(at.tolist(), *fields, strict=True):
                _check_row(one, f"{path}, line {line}")
            raise
        ranks += fields[3]
        lines.append(at)
    row, line_of = np.concatenate(rows), np.concatenate(lines)
    return _checked(queries, row, passages, scores, lambda hit: f"{path}, line {line_of[hit]}", _ranks(ranks, row))


#: Stands for the end of a line where lines are split together.
_END = b"\x01"


def _fields(block: bytes, first: int, path: Path) -> tuple[NDArray[np.int64], Sequence[Sequence[bytes]]]:
    """Return the lines of some rows, and their first six fields, each as a column.

    Fields are separated by white space of ASCII alone, as for trec_eval.
    """
    count = block.count(b"\n")
    if block.endswith(b"\n") and b"#" not in block and _END not in block:
        fields = block.replace(b"\n", b" " + _END + b" ").split()
        if len(fields) == 7 * count == 7 * fields[6::7].count(_END):  # no line has more fields or fewer
            return np.arange(first, first + count), [fields[at::7] for at in range(6)]
    rows = [line.split() for line in block.split(b"\n")]
    kept = [_is_row(row, f"{path}, line {line}") for line, row in enumerate(rows, first)]
    columns = list(zip(*(row[:6] for row, keep in zip(rows, kept, strict=True) if keep), strict=True))
    return np.flatnonzero(kept) + first, columns or [()] * 6


def _is_row(fields: Sequence[bytes], where: str) -> bool:
    """Return whether a line is a row of a run, not blank or a comment.

    trec_eval has no comments. A line that begins with # is a row if all of its fields are those of one, since the id of
    a query may begin so.
    """
    if fields and fields[0].startswith(b"#"):
        if fields[0] == b"#" or len(fields) < 6 or not is_iteration(fields[1].decode("ascii", "replace")):
            return False
        return _number(fields[4]) is not None and (fields[3] == b"-" or _number(fields[3]) is not None)
    if 0 < len(fields) < 6:
        raise wrong_fields([decoded(field, where) for field in fields], "query, Q0, passage, rank, score, tag", where)
    return bool(fields)


def _check_row(fields: Sequence[bytes], where: str) -> None:
    """Raise if a row's score is no number, or a name no text."""
    query, passage, score = (decoded(fields[at], where) for at in (0, 2, 4))
    if _number(fields[4]) is None:
        raise FormatError(
            "type",
            "score",
            "the score of the passage {passage!r} for the query {query!r} is {given!r}; it must be a number",
            passage=passage,
            query=query,
            given=score,
        ).at(where)


def _number(field: bytes) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


def _ranks(fields: Sequence[bytes], row: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the ranks of hits; the places in the file for a query with a rank that is not a number."""
    try:
        ranks = np.array(list(map(float, fields)))
    except ValueError:
        ranks = np.array([np.nan if (rank := _number(one)) is None else rank for one in fields])
    wrong = ~np.isfinite(ranks)
    if wrong.any():
        unranked = np.isin(row, row[wrong])
        ranks[unranked] = np.flatnonzero(unranked)
    return ranks


def _checked(
    queries: Sequence[str],
    row: NDArray[np.int64],
    passages: list[str],
    scores: Sequence[Any],
    place: Callable[[int], str],
    ranks: NDArray[np.float64] | None = None,
    answers: Mapping[str, str] = MappingProxyType({}),
    notes: Mapping[str, str] = MappingProxyType({}),
) -> Rankings:
    """Return the rankings of hits in a file; ``place`` returns where a hit is."""
    try:
        values = np.array(scores, np.float64)
    except OverflowError:  # an integer beyond float64
        values = np.array([float(one) if is_real(one) else np.nan for one in scores])
    wrong = np.flatnonzero(~(np.abs(values) <= FLOAT32_MAX))
    if wrong.size:
        raise _wrong_score(scores[wrong[0]], place(int(wrong[0])))
    found = ranked(queries, row, passages, values, ranks, answers, notes)
    twice = found.twice()
    if twice is not None:
        query, passage = twice
        number = queries.index(query)
        hits = [hit for hit in np.flatnonzero(row == number).tolist() if passages[hit] == passage]
        raise FormatError(
            "duplicate",
            "hits",
            "the passage {given!r} is there twice for the query {query!r}",
            given=passage,
            query=query,
        ).at(place(hits[1]))
    return found


def _from_json(path: Path) -> Rankings:
    text = "\n".join(line for _, line in numbered_lines(path, FormatError))
    content = parse_line(text, str(path))
    if isinstance(content, list):
        return _from_objects((f"{path}, entry {at}", row) for at, row in enumerate(content))
    if not isinstance(content, dict):
        raise FormatError(
            "type", None, "it is neither a list of a run's rows nor an object {{query: {{passage: score}}}}"
        ).at(path)
    rows = []
    for query, scored in content.items():
        if not isinstance(scored, dict):
            raise FormatError(
                "type",
                None,
                "the query {query!r} has {given!r}; it must have an object {{passage: score}}",
                query=query,
                given=scored,
            ).at(path)
        hits = [{"id": passage, "score": score} for passage, score in scored.items()]
        rows.append((f"{path}, query {query!r}", {"id": query, "hits": hits}))
    return _from_objects(iter(rows))


def _parquet(path: Path) -> list[Any]:
    try:
        file = open_parquet(path, "reading a run from a Parquet file")
        tables = read_groups(file, path, file.schema_arrow.names, validate=True)
        return [row for table in tables for row in rows_of(table, path)]
    except InputError as error:
        raise error.about(kind=FormatError) from None


def _from_objects(rows: Iterator[tuple[str, Any]]) -> Rankings:
    places: dict[str, str] = {}
    sizes, passages, scores = list[int](), list[str](), list[Any]()
    answers, notes = dict[str, str](), dict[str, str]()
    for where, row in rows:
        if not isinstance(row, Mapping) or not is_id(row.get("id")) or not isinstance(row.get("hits"), list):
            raise FormatError("type", None, "it is not a row of a run, an object with 'id' and a list 'hits'").at(where)
        query, answer, note = str(row["id"]), row.get("answer"), _note(row, where)
        if query in places:
            raise FormatError("duplicate", "id", "the query {given!r} is there twice", given=query).at(where)
        if answer is not None and not isinstance(answer, str):
            raise FormatError("type", "answer", "the answer is {given!r}; it must be a string", given=answer).at(where)
        places[query] = where
        if answer is not None:
            answers[query] = answer
        if note is not None:
            notes[query] = note
        own, values = _hits(row["hits"], where)
        sizes.append(len(own))
        passages += own
        scores += values
    of = np.repeat(np.arange(len(sizes)), np.array(sizes, np.int64))
    wheres = list(places.values())
    return _checked(list(places), of, passages, scores, lambda hit: wheres[of[hit]], None, answers, notes)


def _note(row: Mapping[str, Any], where: str) -> str | None:
    """Return the first note of a row, as ``hopfuse score`` writes them."""
    notes = row.get("notes") or ()
    try:
        return next((str(one["message"]) for one in notes), None)
    except (TypeError, KeyError):
        raise FormatError(
            "type", "notes", "the notes are {given!r}; each must be an object with a 'message'", given=notes
        ).at(where) from None


def _hits(hits: list[Any], where: str) -> tuple[list[str], list[Any]]:
    """Return the passages and the scores of a row."""
    try:
        passages, scores = [hit["id"] for hit in hits], [hit["score"] for hit in hits]
    except (KeyError, TypeError, IndexError):
        passages, scores = [], [None]
    if set(map(type, passages)) <= {str} and set(map(type, scores)) <= {float, int}:
        return passages, scores
    for hit in hits:
        if not isinstance(hit, dict) or not is_id(hit.get("id")):
            raise FormatError(
                "type", "hits", "the hit {given!r} is not an object {{'id': …, 'score': …}}", given=hit
            ).at(where)
        if not is_real(hit.get("score")):
            raise _wrong_score(hit.get("score"), where)
    return list(map(str, passages)), scores


def _wrong_score(score: Any, where: str) -> HopfuseError:
    return FormatError(
        "finite" if is_real(score) else "type",
        "score",
        "the score is {given!r}; it must be a finite number that float32 can hold",
        given=score,
    ).at(where)
