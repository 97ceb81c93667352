"""Read and write relevance judgements: JSON Lines, TREC qrels, BEIR folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FormatError, HopfuseError, InputError
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

    Formats and errors are as for :func:`hopfuse.evaluate.read_qrels`.

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
    if name.split() != [name]:
        raise InputError(
            "unsupported",
            None,
            "{given!r} is empty or holds white space, which TREC files cannot write; write .jsonl instead",
            given=name,
        )
    return name


def _jsonl(path: Path) -> list[tuple[str, dict[str, Any]]]:
    rows: list[tuple[str, dict[str, Any]]] = []
    lines: dict[str, int] = {}
    for at, record in json_objects(path, ("id", "gold")):
        where = f"{path}, line {at}"
        row = dict(record)
        if not is_id(row["id"]):
            raise _wrong("id", row["id"], "a string or an integer, the id of a query", where)
        query = str(row["id"])
        if query in lines:
            raise FormatError(
                "duplicate",
                "id",
                "the query id {given!r} was on line {line} already",
                given=query,
                line=lines[query],
            ).at(where)
        lines[query] = at
        row["gold"] = _names(row["gold"], "gold", where)
        row["last_hop"] = _names(row.get("last_hop") or [], "last_hop", where)
        hops = row.get("hops") or []
        if not isinstance(hops, list):
            raise _wrong("hops", hops, "a list with a list of passages for every hop", where)
        row["hops"] = [_names(hop, f"hops[{number}]", where) for number, hop in enumerate(hops)]
        rows.append((where, row))
    return rows


def _names(values: Any, key: str, where: str) -> list[str]:
    if not isinstance(values, list):
        raise _wrong(key, values, "a list of passages", where)
    for at, value in enumerate(values):
        if not is_id(value):
            raise _wrong(f"{key}[{at}]", value, "a string or an integer, the id of a passage", where)
    return [str(value) for value in values]


def _wrong(key: str, given: Any, allowed: str, where: str) -> HopfuseError:
    """Return the error for a value of a file."""
    return FormatError(
        "type", key, "{key} is {given!r}; it must be {allowed}", key=key, given=given, allowed=allowed
    ).at(where)


def is_id(value: Any) -> bool:
    """Return whether a value of a file can be an id: a string or an integer."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _judgements(path: Path) -> Iterator[Judgement]:
    """Yield the lines of a TREC file or of a BEIR table."""
    table = False
    for number, (at, line) in enumerate(text_lines(path)):
        if number == 0 and line.split("\t") == _BEIR_HEADER:
            table = True
            continue
        # TREC's fields are separated by white space of ASCII, at which bytes are split
        fields = line.split("\t") if table else [field.decode() for field in line.encode().split()]
        expected = "query-id, corpus-id, score, separated by tabs" if table else "query, iteration, passage, grade"
        if not table and fields[0].startswith("#") and not _is_judgement(fields):
            continue
        if len(fields) != (3 if table else 4):
            raise wrong_fields(fields, expected, f"{path}, line {at}")
        try:
            yield at, fields[0], fields[-2], int(fields[-1])
        except ValueError:
            raise _wrong("grade", fields[-1], "an integer", f"{path}, line {at}") from None


def _is_judgement(fields: Sequence[str]) -> bool:
    """Return whether a line of TREC that begins with # is no comment: all of its fields are those of a judgement."""
    if fields[0] == "#" or len(fields) != 4 or not is_iteration(fields[1]):
        return False
    try:
        int(fields[3])
    except ValueError:
        return False
    return True


def is_iteration(field: str) -> bool:
    """Return whether a field can be the second one of TREC's files, which is not used: ``Q0`` or a number.

    Examples
    --------
    >>> is_iteration("Q0"), is_iteration("0"), is_iteration("of")
    (True, True, False)
    """
    return field.upper() == "Q0" or field.isdecimal()


def wrong_fields(fields: Sequence[str], expected: str, where: str) -> HopfuseError:
    """Return the error for a line with another number of fields."""
    return FormatError(
        "syntax", None, "the line has {given} fields; it must have: {allowed}", given=len(fields), allowed=expected
    ).at(where)


def _by_query(
    path: Path, judgements: Iterator[Judgement], questions: Mapping[str, str]
) -> list[tuple[str, dict[str, Any]]]:
    grades: dict[str, dict[str, tuple[int, int]]] = {}
    for at, query, passage, grade in judgements:
        before = grades.setdefault(query, {})
        if passage in before:
            raise FormatError(
                "duplicate",
                None,
                "the query {query!r} and the passage {passage!r} were judged on line {line} already",
                query=query,
                passage=passage,
                line=before[passage][0],
            ).at(f"{path}, line {at}")
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
        raise InputError(
            "missing",
            "split",
            "{folder} has no qrels/{given}.tsv; a BEIR folder has one for each split, here: {allowed}",
            folder=folder,
            given=split,
            allowed=", ".join(sorted(p.stem for p in (folder / "qrels").glob("*.tsv"))) or "none",
        )
    questions = _column(folder / "queries.jsonl", "text")
    titles = _column(folder / "corpus.jsonl", "title")

    def known() -> Iterator[Judgement]:
        for at, query, passage, grade in _judgements(table):
            for key, name, ids, file in (
                ("query-id", query, questions, "queries.jsonl"),
                ("corpus-id", passage, titles, "corpus.jsonl"),
            ):
                if name not in ids:
                    raise FormatError(
                        "unknown", key, "{key} is {given!r}, which {file} does not have", key=key, given=name, file=file
                    ).at(f"{table}, line {at}")
            yield at, query, passage, grade

    rows = _by_query(table, known(), questions)
    return QrelsFile(rows, {passage: title for passage, title in titles.items() if title})


def _column(path: Path, column: str) -> dict[str, str]:
    """Return a column of one of BEIR's .jsonl files, by ``_id``."""
    found: dict[str, str] = {}
    for at, row in json_objects(path, ("_id",)):
        if not is_id(row["_id"]):
            raise _wrong("_id", row["_id"], "a string or an integer", f"{path}, line {at}")
        found[str(row["_id"])] = str(row.get(column, ""))
    return found
