"""Queries from a file, one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import Index
from ...encoders import Encoder
from ...errors import InputError, MissingExtraError
from ...extract import Match, QuestionMatcher
from ...io.json_lines import parse_json
from ...io.npy import read_npy

BATCH = 1024
COLUMNS = ("id", "text", "question", "entities")
TEXT_KEYS = ("text", "question")


class Query(NamedTuple):
    """A row: id (its number where it has none), text, and names or numbers of entities (None: not given)."""

    id: str
    text: str | None
    entities: list[str | int] | None


def read_queries(path: Path) -> Iterator[Query]:
    """Yield the rows of a .jsonl or .parquet file, in order, without holding the file in memory.

    Columns: ``id`` (str or int), ``text`` or ``question``, ``entities`` (a list of names, or of the
    index's entity numbers), all optional; others are ignored.

    Raises
    ------
    InputError
        Another kind of file, or a row that is malformed; the message names file and row.
    MissingExtraError
        A Parquet file is given and pyarrow is not installed.
    """
    rows = _jsonl_rows(path) if path.suffix == ".jsonl" else _parquet_rows(path)
    for number, (where, row) in enumerate(rows):
        yield _query(row, number, where)


def count_queries(path: Path) -> int:
    """Return how many rows a file has; of a Parquet file only the footer is read."""
    if path.suffix == ".jsonl":
        with _opened(path) as file:
            return sum(1 for _ in file)
    return int(_parquet_file(path).metadata.num_rows)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path) -> Any:
    try:
        return open(path, "rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _jsonl_rows(path: Path) -> Iterator[tuple[str, Any]]:
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number}"
            try:
                yield where, parse_json(line)
            except (ValueError, RecursionError) as error:
                found = f"is not JSON: {error}" if line.strip() else "is blank"
                raise InputError(f"{where} {found}; a .jsonl file has one JSON object a line") from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    file = _parquet_file(path)
    columns = [name for name in file.schema_arrow.names if name in COLUMNS]
    number = 0
    for batch in file.iter_batches(batch_size=BATCH, columns=columns):
        for row in batch.to_pylist():
            yield f"{path}, row {number}", row
            number += 1


def _parquet_file(path: Path) -> Any:
    if path.suffix != ".parquet":
        raise InputError(f"--queries is {str(path)!r}; its suffix must be one of .jsonl, .parquet")
    try:
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow", "arrow", "reading queries from a Parquet file") from error
    try:
        return parquet.ParquetFile(path)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None


def _query(row: Any, number: int, where: str) -> Query:
    if not isinstance(row, dict):
        raise InputError(f"{where} is a {type(row).__name__}; a query is an object with id, text and entities")
    id, entities = row.get("id"), row.get("entities")
    texts = [row[key] for key in TEXT_KEYS if row.get(key) is not None]
    if id is not None and (isinstance(id, bool) or not isinstance(id, (str, int))):
        raise InputError(f"{where} has the id {id!r}; an id is a string or an integer")
    if texts and not isinstance(texts[0], str):
        raise InputError(f"{where} has the text {texts[0]!r}; a text is a string")
    if entities is not None and not (isinstance(entities, list) and all(map(_is_mention, entities))):
        raise InputError(f"{where} has the entities {entities!r}; they are a list of names or of entity numbers")
    return Query(str(number if id is None else id), texts[0] if texts else None, entities)


def _is_mention(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


#: What does without a query's text, where its words are not needed.
_INSTEAD = ", or 'entities' and --vectors"


class QueryInputs:
    """Vectors of a file, a row for each of ``total`` queries, or an encoder; entities as given or as in the text."""

    def __init__(
        self,
        index: Index,
        vectors: Path | None,
        encoder: Encoder | None,
        total: int,
        *,
        case_sensitive: bool,
        alone: NDArray[np.bool_] | None = None,
    ) -> None:
        self.encoder = encoder
        self._vectors = None if vectors is None else _read_vectors(vectors, total)
        self._matcher, self._alone = QuestionMatcher(index, case_sensitive=case_sensitive), alone

    def vectors(self, queries: list[Query], first: int) -> NDArray[Any]:
        """Return rows for the queries ``first``, ``first + 1``, ... of the file."""
        if self._vectors is not None:
            return np.asarray(self._vectors[first : first + len(queries)])
        assert self.encoder is not None
        return self.encoder.encode_queries([text_of(q, "to be encoded", _INSTEAD) for q in queries])

    def entities(self, queries: list[Query]) -> list[Sequence[str | int | Match]]:
        """Return names or numbers of entities for each query, or those that are found in its text."""
        without = [text_of(q, "to find names in", _INSTEAD) for q in queries if q.entities is None]
        names = iter(self._matcher.match(without, allow=self._alone) if without else [])
        return [next(names) if q.entities is None else q.entities for q in queries]


def check_one_source(vectors: Path | None, encoder: str | None, option: str = "--vectors") -> None:
    """Refuse both or neither of ``--vectors``, or what else gives them, and ``--encoder``."""
    if (vectors is None) == (encoder is None):
        raise InputError(f"give {option} or --encoder, and not both: each query needs one vector")


def chunks(queries: Iterator[Query], size: int) -> Iterator[list[Query]]:
    """Yield the queries, so many at a time."""
    while chunk := list(islice(queries, size)):
        yield chunk


def text_of(query: Query, purpose: str, instead: str = "") -> str:
    """Return a query's text, or raise an error that says what it is needed for, and what else would do."""
    if query.text is None:
        raise InputError(f"query {query.id!r} has no text {purpose}; give it 'text'{instead}")
    return query.text


def _read_vectors(path: Path, rows: int) -> NDArray[Any]:
    vectors = read_npy(path, "--vectors")
    if vectors.ndim != 2 or len(vectors) != rows:
        raise InputError(f"--vectors has shape {vectors.shape}; there are {rows} queries, one vector each")
    return vectors
