"""Runs from files: TREC runs, and what ``hopfuse score`` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import FormatError, InputError, MissingExtraError
from ..types import Hits
from ..types.hits import PAD_ID, PAD_SCORE
from .json_lines import check_characters, json_objects, text_lines
from .passage_names import PassageNames
from .run import Run


class _Ranked(NamedTuple):
    """A query's passages and scores in rank order, and its answer."""

    hits: list[tuple[str, float]]
    answer: str | None


def read_run(path: str | PathLike[str], ids: Sequence[str], names: PassageNames) -> Run:
    """A run for the queries ``ids``; what kind of file it is, its suffix says.

    - ``.jsonl``, ``.parquet``: rows of "id" and "hits", a list of {"id": …, "score": …}, as
      ``hopfuse score`` writes them, with an optional "answer". ``.json``: a list of such rows, or an
      object {query: {passage: score}}.
    - any other file: a TREC run, ``query Q0 passage rank score tag``, separated by white space.

    Lists are ordered by score, higher first. Passages of equal score stay as the file ranks them: by the
    rank of a TREC line, else by place. (trec_eval orders them by name instead and does not read the rank.)

    Parameters
    ----------
    path : path
    ids : sequence of str
        The judgements' queries, in order. One that the file lacks gets an empty list, and counts as
        not found; one that only the file has is left out. :class:`Run` says how many there are of each.
    names : PassageNames
        The names that the judgements were read with.

    Raises
    ------
    FormatError
        A line that is not what the format says, a score that is not a finite number, a passage or query
        that comes twice; the message names file and line.
    InputError
        The file has none of the queries.
    MissingExtraError
        A Parquet file is given and pyarrow is not installed.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.evaluate import PassageNames, read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.txt")
    ...     _ = path.write_text("q1 Q0 docA 1 12.5 bm25\\nq1 Q0 docB 2 9.0 bm25\\n")
    ...     run = read_run(path, ["q1", "q2"], PassageNames())
    >>> run.hits.counts.tolist(), run.num_missing
    ([2, 0], 1)
    """
    place = Path(path)
    if place.suffix == ".jsonl":
        rows = _from_objects((f"{place}, line {at}", row) for at, row in json_objects(place, ("id", "hits")))
    elif place.suffix == ".parquet":
        rows = _from_objects((f"{place}, row {at}", row) for at, row in enumerate(_parquet(place)))
    elif place.suffix == ".json":
        rows = _from_json(place)
    else:
        rows = _from_trec(place)
    found = [rows.get(query) for query in ids]
    missing = found.count(None)
    if ids and missing == len(ids):
        first = next(iter(rows), None)
        has = "no query" if first is None else f"queries such as {first!r}"
        raise InputError(f"{place} has {has}, and none of the {len(ids)} judged ones, such as {ids[0]!r}")
    answers = [None if row is None else row.answer for row in found]
    return Run(
        _hits([[] if row is None else row.hits for row in found], names),
        None if all(answer is None for answer in answers) else answers,
        missing,
        len(rows) - (len(ids) - missing),
    )


def _hits(rows: Sequence[Sequence[tuple[str, float]]], names: PassageNames) -> Hits:
    shape = (len(rows), max((len(row) for row in rows), default=0))
    ids, scores = np.full(shape, PAD_ID, np.int64), np.full(shape, PAD_SCORE, np.float32)
    for b, row in enumerate(rows):
        ids[b, : len(row)] = [names.number(name) for name, _ in row]
        scores[b, : len(row)] = [score for _, score in row]
    return Hits._trusted(ids, scores, np.array([len(row) for row in rows], np.int64))


def _from_trec(path: Path) -> dict[str, _Ranked]:
    lists: dict[str, dict[str, tuple[float, int]]] = {}
    for at, line in text_lines(path):
        where, fields = f"{path}, line {at}", line.split()
        if len(fields) != 6:
            raise FormatError(f"{where} has {len(fields)} fields; a line is: query, Q0, passage, rank, score, tag")
        query, _, passage, rank, score, _ = fields
        try:
            order = (-float(score), int(rank))
        except ValueError:
            message = f"{where} has rank {rank!r} and score {score!r}; they are an integer and a number"
            raise FormatError(message) from None
        _check_score(-order[0], where)
        if passage in lists.setdefault(query, {}):
            raise FormatError(f"{where}: passage {passage!r} comes twice for query {query!r}")
        lists[query][passage] = order
    return {
        query: _Ranked([(p, -row[p][0]) for p in sorted(row, key=lambda p: row[p])], None)
        for query, row in lists.items()
    }


def _from_json(path: Path) -> dict[str, _Ranked]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text)
    except ValueError as error:
        raise FormatError(f"{path} is not JSON: {error}") from error
    check_characters(text, content, str(path))
    if isinstance(content, list):
        return _from_objects((f"{path}, entry {at}", row) for at, row in enumerate(content))
    if not isinstance(content, dict):
        raise FormatError(f"{path} is neither a list of runs' rows nor an object {{query: {{passage: score}}}}")
    rows = []
    for query, scored in content.items():
        if not isinstance(scored, dict):
            raise FormatError(f"{path}, query {query!r} has {scored!r}; it is an object {{passage: score}}")
        hits = [{"id": passage, "score": score} for passage, score in scored.items()]
        rows.append((f"{path}, query {query!r}", {"id": query, "hits": hits}))
    return _from_objects(iter(rows))


def _parquet(path: Path) -> list[Any]:
    try:
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow", "arrow", "reading a run from a Parquet file") from error
    try:
        return list(parquet.read_table(path).to_pylist())
    except ValueError as error:
        raise FormatError(f"{path} cannot be read as Parquet: {error}") from None


def _from_objects(rows: Iterator[tuple[str, Any]]) -> dict[str, _Ranked]:
    found: dict[str, _Ranked] = {}
    for where, row in rows:
        if not isinstance(row, Mapping) or not _is_name(row.get("id")) or not isinstance(row.get("hits"), list):
            raise FormatError(f"{where} is not a row of a run: an object with 'id' and a list 'hits'")
        query, answer = str(row["id"]), row.get("answer")
        if query in found:
            raise FormatError(f"{where}: query {query!r} comes twice")
        if answer is not None and not isinstance(answer, str):
            raise FormatError(f"{where}: the answer is {answer!r}; it is a string")
        scores: dict[str, float] = {}
        for hit in row["hits"]:
            passage, score = _hit(hit, where)
            if passage in scores:
                raise FormatError(f"{where}: passage {passage!r} comes twice for query {query!r}")
            scores[passage] = score
        found[query] = _Ranked(sorted(scores.items(), key=lambda hit: -hit[1]), answer)
    return found


def _hit(hit: Any, where: str) -> tuple[str, float]:
    if not isinstance(hit, dict) or not _is_name(hit.get("id")):
        raise FormatError(f"{where} has the hit {hit!r}; a hit is {{'id': …, 'score': …}}")
    score = hit.get("score")
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise FormatError(f"{where} has the score {score!r}; it is a number")
    _check_score(score, where)
    return str(hit["id"]), float(score)


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _check_score(value: float, where: str) -> None:
    if not isfinite(value) or abs(value) > float(np.finfo(np.float32).max):
        raise FormatError(f"{where} has the score {value}; it is a finite number that float32 can hold")
