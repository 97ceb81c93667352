"""Read and write runs: TREC files, and the files of ``hopfuse score``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._validation import is_real
from ..errors import FormatError, HopfuseError, InputError
from .json_lines import json_objects, numbered_lines, parse_line, text_lines
from .parquet import open_parquet, read_groups
from .qrels import is_id, trec_name, wrong_fields


class Ranking(NamedTuple):
    """A query's passages and scores, best first, its answer, if any, and the first of its notes, if any."""

    hits: list[tuple[str, float]]
    answer: str | None = None
    note: str | None = None


def read_run_file(path: str | PathLike[str]) -> dict[str, Ranking]:
    """Read the rankings of a run file by query; the suffix determines the format.

    Formats and errors are those of :func:`hopfuse.evaluate.read_run`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.txt")
    ...     _ = path.write_text("q1 Q0 docA 1 12.5 bm25\\nq1 Q0 docB 2 9.0 bm25\\n")
    ...     read_run_file(path)
    {'q1': Ranking(hits=[('docA', 12.5), ('docB', 9.0)], answer=None, note=None)}
    """
    place = Path(path)
    if place.suffix == ".jsonl":
        return _from_objects((f"{place}, line {at}", row) for at, row in json_objects(place, ("id", "hits")))
    if place.suffix == ".parquet":
        return _from_objects((f"{place}, row {at}", row) for at, row in enumerate(_parquet(place)))
    return _from_json(place) if place.suffix == ".json" else _from_trec(place)


def run_lines(rankings: Mapping[str, Ranking], tag: str = "hopfuse") -> str:
    """Return rankings as the text of a TREC run file; ranks start at 1, and scores have full precision.

    Raises
    ------
    InputError
        A name is empty or contains white space, which the format cannot represent.

    Examples
    --------
    >>> run_lines({"q1": Ranking([("docA", 12.5)])})
    'q1 Q0 docA 1 12.5 hopfuse\\n'
    """
    lines = [
        f"{trec_name(query)} Q0 {trec_name(passage)} {rank} {score!r} {trec_name(tag)}\n"
        for query, ranking in rankings.items()
        for rank, (passage, score) in enumerate(ranking.hits, 1)
    ]
    return "".join(lines)


def _from_trec(path: Path) -> dict[str, Ranking]:
    lists: dict[str, dict[str, tuple[float, int]]] = {}
    for at, line in text_lines(path):
        where, fields = f"{path}, line {at}", line.split()
        if len(fields) != 6:
            raise wrong_fields(fields, "query, Q0, passage, rank, score, tag", where)
        query, _, passage, rank, score, _ = fields
        try:
            order = (-float(score), int(rank))
        except ValueError:
            raise FormatError(
                "type",
                "rank",
                "the rank is {rank!r} and the score {score!r}; they must be an integer and a number",
                rank=rank,
                score=score,
            ).at(where) from None
        _check_score(-order[0], where)
        if passage in lists.setdefault(query, {}):
            raise _repeated(passage, query, where)
        lists[query][passage] = order
    return {
        query: Ranking([(p, -row[p][0]) for p in sorted(row, key=lambda p: row[p])]) for query, row in lists.items()
    }


def _from_json(path: Path) -> dict[str, Ranking]:
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
        return [row for table in read_groups(file, path, file.schema_arrow.names) for row in table.to_pylist()]
    except InputError as error:
        raise error.about(kind=FormatError) from None


def _from_objects(rows: Iterator[tuple[str, Any]]) -> dict[str, Ranking]:
    found: dict[str, Ranking] = {}
    for where, row in rows:
        if not isinstance(row, Mapping) or not is_id(row.get("id")) or not isinstance(row.get("hits"), list):
            raise FormatError("type", None, "it is not a row of a run, an object with 'id' and a list 'hits'").at(where)
        query, answer = str(row["id"]), row.get("answer")
        if query in found:
            raise FormatError("duplicate", "id", "the query {given!r} is there twice", given=query).at(where)
        if answer is not None and not isinstance(answer, str):
            raise FormatError("type", "answer", "the answer is {given!r}; it must be a string", given=answer).at(where)
        scores: dict[str, float] = {}
        for hit in row["hits"]:
            passage, score = _hit(hit, where)
            if passage in scores:
                raise _repeated(passage, query, where)
            scores[passage] = score
        found[query] = Ranking(sorted(scores.items(), key=lambda hit: -hit[1]), answer, _note(row, where))
    return found


def _note(row: Mapping[str, Any], where: str) -> str | None:
    """Return the first note of a row, as ``hopfuse score`` writes them."""
    notes = row.get("notes") or ()
    try:
        return next((str(one["message"]) for one in notes), None)
    except (TypeError, KeyError):
        raise FormatError(
            "type", "notes", "the notes are {given!r}; each must be an object with a 'message'", given=notes
        ).at(where) from None


def _hit(hit: Any, where: str) -> tuple[str, float]:
    if not isinstance(hit, dict) or not is_id(hit.get("id")):
        raise FormatError("type", "hits", "the hit {given!r} is not an object {{'id': …, 'score': …}}", given=hit).at(
            where
        )
    _check_score(hit.get("score"), where)
    return str(hit["id"]), float(hit["score"])


def _check_score(score: Any, where: str) -> None:
    if not is_real(score) or not isfinite(score) or abs(score) > float(np.finfo(np.float32).max):
        raise FormatError(
            "finite" if is_real(score) else "type",
            "score",
            "the score is {given!r}; it must be a finite number that float32 can hold",
            given=score,
        ).at(where)


def _repeated(passage: str, query: str, where: str) -> HopfuseError:
    return FormatError(
        "duplicate", "hits", "the passage {given!r} is there twice for the query {query!r}", given=passage, query=query
    ).at(where)
