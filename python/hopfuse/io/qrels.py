"""Read and write relevance judgements: JSON Lines, TREC qrels, BEIR folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FormatError, InputError
from .json_lines import json_objects, text_lines

_BEIR_HEADER = ["query-id", "corpus-id", "score"]

Judgement = tuple[int, str, str, int]
"""Line, query, passage and grade."""


class QrelsFile(NamedTuple):
    """Judgements of a file, with passages as strings.

    ``rows`` has, for each query, its place in the file, for error messages, and its record: ``id``, ``gold`` and other
    fields of the file. ``titles`` has titles of passages, from a BEIR folder.
    """

    rows: list[tuple[str, dict[str, Any]]]
    titles: dict[str, str]


def read_qrels_file(path: str | PathLike[str], *, split: str = "test") -> QrelsFile:
    """Read judgements from a file or folder; the suffix and the first line determine the format.

    Formats and errors are those of :func:`hopfuse.evaluate.read_qrels`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "qrels.txt")
    ...     _ = path.write_text("q1 0 docA 2\\nq1 0 docB 0\\n")
    ...     [record for _, record in read_qrels_file(path).rows]
    [{'id': 'q1', 'gold': ['docA'], 'grades': [2], 'question': ''}]
    """
    place = Path(path)
    if place.is_dir():
        return _beir_folder(place, split)
    if place.suffix == ".jsonl":
        return QrelsFile(_jsonl(place), {})
    return QrelsFile(_by_query(place, _judgements(place), {}), {})


def qrels_lines(judgements: Mapping[str, Mapping[str, int]]) -> str:
    """Return judgements (grades by query and passage) as the text of a TREC qrels file.

    Raises
    ------
    InputError
        A name is empty or contains white space, which the format cannot represent.

    Examples
    --------
    >>> qrels_lines({"q1": {"docA": 2}})
    'q1 0 docA 2\\n'
    """
    rows = [(trec_name(q), trec_name(p), grade) for q, row in judgements.items() for p, grade in row.items()]
    return "".join(f"{query} 0 {passage} {grade}\n" for query, passage, grade in rows)


def trec_name(name: str) -> str:
    """Return a name, unless a TREC file cannot represent it."""
    if not name or any(map(str.isspace, name)):
        raise InputError(
            "empty",
            None,
            "{name!r} is empty or holds white space, which TREC files cannot write; write .jsonl instead",
            name=name,
        )
    return name


def _jsonl(path: Path) -> list[tuple[str, dict[str, Any]]]:
    rows: list[tuple[str, dict[str, Any]]] = []
    lines: dict[Any, int] = {}
    for at, record in json_objects(path, ("id", "gold")):
        where = f"{path}, line {at}"
        row = dict(record)
        if row["id"] in lines:
            raise FormatError(
                "damaged",
                None,
                "{where}: query id {row!r} was on line {lines} already",
                where=where,
                row=row["id"],
                lines=lines[row["id"]],
            )
        lines[row["id"]] = at
        row["gold"] = _names(row["gold"], "gold", where)
        row["last_hop"] = _names(row.get("last_hop") or [], "last_hop", where)
        hops = row.get("hops") or []
        if not isinstance(hops, list):
            raise FormatError(
                "damaged",
                None,
                "{where}: hops is {given!r}; it is a list with a list of passages for every hop",
                where=where,
                given=hops,
            )
        row["hops"] = [_names(hop, f"hop {number}", where) for number, hop in enumerate(hops, 1)]
        rows.append((where, row))
    return rows


def _names(values: Any, field: str, where: str) -> list[str]:
    if not isinstance(values, list):
        raise FormatError(
            "damaged",
            None,
            "{where}: {field_value} is {values!r}; it is a list of passages",
            where=where,
            field_value=field,
            values=values,
        )
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise FormatError(
                "damaged",
                None,
                "{where}: {field_value} has {value!r}; a passage is a string or an integer",
                where=where,
                field_value=field,
                value=value,
            )
    return [str(value) for value in values]


def _judgements(path: Path) -> Iterator[Judgement]:
    """Yield the lines of a TREC file or of a BEIR table."""
    table = False
    for number, (at, line) in enumerate(text_lines(path)):
        if number == 0 and line.split("\t") == _BEIR_HEADER:
            table = True
            continue
        fields = line.split("\t") if table else line.split()
        expected = "query-id, corpus-id, score, separated by tabs" if table else "query, iteration, passage, grade"
        if len(fields) != (3 if table else 4):
            raise FormatError(
                "damaged",
                None,
                "{path}, line {at} has {number} fields; a line is: {expected}",
                path=path,
                at=at,
                number=len(fields),
                expected=expected,
            )
        try:
            yield at, fields[0], fields[-2], int(fields[-1])
        except ValueError:
            raise FormatError(
                "damaged",
                None,
                "{path}, line {at} has the grade {fields!r}; a grade is an integer",
                path=path,
                at=at,
                fields=fields[-1],
            ) from None


def _by_query(
    path: Path, judgements: Iterator[Judgement], questions: Mapping[str, str]
) -> list[tuple[str, dict[str, Any]]]:
    grades: dict[str, dict[str, tuple[int, int]]] = {}
    for at, query, passage, grade in judgements:
        before = grades.setdefault(query, {})
        if passage in before:
            first = before[passage][0]
            raise FormatError(
                "damaged",
                None,
                "{path}, line {at}: query {query!r} and passage {passage!r} were judged on line {first}",
                path=path,
                at=at,
                query=query,
                passage=passage,
                first=first,
            )
        before[passage] = (at, grade)
    rows = []
    for query, row in grades.items():
        relevant = {passage: grade for passage, (_, grade) in row.items() if grade > 0}
        record = {"id": query, "gold": list(relevant), "grades": list(relevant.values())}
        rows.append((str(path), {**record, "question": questions.get(query, "")}))
    return rows


def _beir_folder(folder: Path, split: str) -> QrelsFile:
    table = folder / "qrels" / f"{split}.tsv"
    if not table.is_file():
        there = ", ".join(sorted(p.stem for p in (folder / "qrels").glob("*.tsv"))) or "none"
        raise InputError(
            "length",
            None,
            "{folder} has no qrels/{split}.tsv; a BEIR folder has one for each split, here: {there}",
            folder=folder,
            split=split,
            there=there,
        )
    questions = _column(folder / "queries.jsonl", "text")
    titles = _column(folder / "corpus.jsonl", "title")

    def known() -> Iterator[Judgement]:
        for at, query, passage, grade in _judgements(table):
            if query not in questions:
                raise FormatError(
                    "damaged",
                    None,
                    "{table}, line {at} names the query {query!r}, which queries.jsonl does not have",
                    table=table,
                    at=at,
                    query=query,
                )
            if passage not in titles:
                raise FormatError(
                    "damaged",
                    None,
                    "{table}, line {at} names the passage {passage!r}, which corpus.jsonl does not have",
                    table=table,
                    at=at,
                    passage=passage,
                )
            yield at, query, passage, grade

    rows = _by_query(table, known(), questions)
    return QrelsFile(rows, {passage: title for passage, title in titles.items() if title})


def _column(path: Path, column: str) -> dict[str, str]:
    """Return a column of one of BEIR's .jsonl files, by ``_id``."""
    found: dict[str, str] = {}
    for at, row in json_objects(path, ("_id",)):
        if isinstance(row["_id"], bool) or not isinstance(row["_id"], (str, int)):
            raise FormatError(
                "damaged",
                None,
                "{path}, line {at} has the _id {row!r}; it is a string",
                path=path,
                at=at,
                row=row["_id"],
            )
        found[str(row["_id"])] = str(row.get(column, ""))
    return found
