"""Judgements from files: JSON Lines, TREC qrels, BEIR folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import FormatError, InputError
from .json_lines import json_objects, text_lines
from .passage_names import PassageNames
from .qrels import Qrels

_BEIR_HEADER = ["query-id", "corpus-id", "score"]


def read_qrels(path: str | PathLike[str], names: PassageNames, *, split: str = "test") -> Qrels:
    """Judgements from a file or folder; what it is, its suffix and its first line say.

    - ``.jsonl``: an object a line with "id" and "gold" (see :meth:`Qrels.from_records`); passages are
      named by strings or by integers, and 7 is the same passage as "7".
    - a folder: BEIR's ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``.
    - a file whose first line is ``query-id  corpus-id  score``: such a table by itself.
    - any other file: TREC qrels, ``query iteration passage grade``, separated by white space. The
      iteration is not used.

    Grades above 0 are relevant. A query whose grades are all 0 or less is kept, with no gold passage.

    Parameters
    ----------
    path : path
    names : PassageNames
        Numbers the passages; :func:`read_run` with the same names reads runs for these judgements.
    split : str
        Which table of a BEIR folder.

    Returns
    -------
    Qrels
        In the order in which the queries are first named.

    Raises
    ------
    FormatError
        A line that is not what the format says, a pair that is judged twice, a BEIR table that names a
        query or passage that the folder does not have; the message names file and line.
    InputError
        A folder without the table of that split.
    OSError
        The file cannot be read.

    References
    ----------
    TREC's formats: https://trec.nist.gov/data/qrels_eng/. BEIR: Thakur et al., NeurIPS (2021).

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
    place = Path(path)
    if place.is_dir():
        return _beir_folder(place, names, split)
    if place.suffix == ".jsonl":
        return _jsonl(place, names)
    return _judged(place, _judgements(place), names, {})


def _jsonl(path: Path, names: PassageNames) -> Qrels:
    rows: list[dict[str, Any]] = []
    lines: dict[Any, int] = {}
    for at, record in json_objects(path, ("id", "gold")):
        where = f"{path}, line {at}"
        row = dict(record)
        if row["id"] in lines:
            raise FormatError(f"{where}: query id {row['id']!r} was on line {lines[row['id']]} already")
        lines[row["id"]] = at
        row["gold"] = _numbers(row["gold"], "gold", names, where)
        row["last_hop"] = _numbers(row.get("last_hop") or [], "last_hop", names, where)
        hops = row.get("hops") or []
        if not isinstance(hops, list):
            raise FormatError(f"{where}: hops is {hops!r}; it is a list with a list of passages for every hop")
        row["hops"] = [_numbers(hop, f"hop {number}", names, where) for number, hop in enumerate(hops, 1)]
        try:
            Qrels.from_records([row])
        except InputError as error:
            raise FormatError(f"{where}: {error}") from error
        rows.append(row)
    return Qrels.from_records(rows)


def _numbers(values: Any, field: str, names: PassageNames, where: str) -> list[int]:
    if not isinstance(values, list):
        raise FormatError(f"{where}: {field} is {values!r}; it is a list of passages")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise FormatError(f"{where}: {field} has {value!r}; a passage is a string or an integer")
    return [names.number(str(value)) for value in values]


Judgement = tuple[int, str, str, int]  # line, query, passage, grade


def _judgements(path: Path) -> Iterator[Judgement]:
    """The lines of a TREC file or of a BEIR table."""
    table = False
    for number, (at, line) in enumerate(text_lines(path)):
        if number == 0 and line.split("\t") == _BEIR_HEADER:
            table = True
            continue
        fields = line.split("\t") if table else line.split()
        expected = "query-id, corpus-id, score, separated by tabs" if table else "query, iteration, passage, grade"
        if len(fields) != (3 if table else 4):
            raise FormatError(f"{path}, line {at} has {len(fields)} fields; a line is: {expected}")
        try:
            yield at, fields[0], fields[-2], int(fields[-1])
        except ValueError:
            raise FormatError(f"{path}, line {at} has the grade {fields[-1]!r}; a grade is an integer") from None


def _judged(path: Path, rows: Iterator[Judgement], names: PassageNames, questions: Mapping[str, str]) -> Qrels:
    judged: dict[str, dict[str, tuple[int, int]]] = {}
    for at, query, passage, grade in rows:
        before = judged.setdefault(query, {})
        if passage in before:
            first = before[passage][0]
            raise FormatError(f"{path}, line {at}: query {query!r} and passage {passage!r} were judged on line {first}")
        before[passage] = (at, grade)
    relevant = [{p: grade for p, (_, grade) in row.items() if grade > 0} for row in judged.values()]
    return Qrels(
        list(judged),
        [[names.number(p) for p in row] for row in relevant],
        grades=[list(row.values()) for row in relevant],
        questions=[questions.get(query, "") for query in judged],
    )


def _beir_folder(folder: Path, names: PassageNames, split: str) -> Qrels:
    table = folder / "qrels" / f"{split}.tsv"
    if not table.is_file():
        there = ", ".join(sorted(p.stem for p in (folder / "qrels").glob("*.tsv"))) or "none"
        raise InputError(f"{folder} has no qrels/{split}.tsv; a BEIR folder has one for each split, here: {there}")
    questions = {
        _name(r, at, folder / "queries.jsonl"): str(r.get("text", "")) for at, r in _rows(folder / "queries.jsonl")
    }
    passages = {
        _name(r, at, folder / "corpus.jsonl"): str(r.get("title", "")) for at, r in _rows(folder / "corpus.jsonl")
    }
    for passage, title in passages.items():
        if title:
            names.set_title(passage, title)

    def known() -> Iterator[Judgement]:
        for at, query, passage, grade in _judgements(table):
            if query not in questions:
                raise FormatError(f"{table}, line {at} names the query {query!r}, which queries.jsonl does not have")
            if passage not in passages:
                raise FormatError(f"{table}, line {at} names the passage {passage!r}, which corpus.jsonl does not have")
            yield at, query, passage, grade

    return _judged(table, known(), names, questions)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return json_objects(path, ("_id",))


def _name(row: Mapping[str, Any], at: int, path: Path) -> str:
    if isinstance(row["_id"], bool) or not isinstance(row["_id"], (str, int)):
        raise FormatError(f"{path}, line {at} has the _id {row['_id']!r}; it is a string")
    return str(row["_id"])
