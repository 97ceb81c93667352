"""Read queries from files: ids, texts, names of entities and vectors, in order or from any row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_suffix
from ..errors import InputError
from .json_lines import parse_line
from .parquet import check_group, open_parquet, read_batches, rows_of
from .qrels import is_id
from .tables import refuse_row, refuse_value

BATCH = 1024
COLUMNS = ("id", "_id", "text", "question", "entities", "vector")
TEXT_KEYS = ("text", "question")


class Query(NamedTuple):
    """A row: id (by default its number), text, names or numbers of entities, and vector; None if not given."""

    id: str
    text: str | None
    entities: list[str | int] | None
    vector: NDArray[np.float32] | None = None


def read_queries(path: Path) -> Iterator[Query]:
    """Yield the rows of a .jsonl or .parquet file, in order, without holding the file in memory.

    Columns: ``id``, which BEIR names ``_id`` (str or int), ``text`` or ``question``, ``entities`` (a list of names,
    or of the index's entity numbers), ``vector`` (a list of numbers), all optional; others are ignored.

    Raises
    ------
    InputError
        The file is of another kind, or a row is malformed; the message names the file and the row.
    MissingExtraError
        A Parquet file is given and pyarrow is not installed.
    """
    return (query for _, query in _kind_of(path)(path).rows())


class JsonlQueries:
    """Rows of a .jsonl file: its lines that are not blank.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self, first: int = 0, offset: int = 0) -> Iterator[tuple[str, Query]]:
        """Yield (description of the row for messages, row), beginning with row ``first`` at byte ``offset``."""
        number = first
        with opened(self._path) as file:
            file.seek(offset)
            for at, line in enumerate(file, 1):
                if line.strip():  # the number of a line is known from the beginning of the file only
                    where = f"{self._path}, row {number}" if offset else f"{self._path}, line {at}"
                    yield where, _query(parse_line(line, where, InputError), number, where)
                    number += 1

    def offsets(self, step: int) -> list[int]:
        """Return the offsets in bytes of the rows 0, step, 2 step, ..."""
        found, at, number = [], 0, 0
        with opened(self._path) as file:
            for line in file:
                if line.strip():
                    if number % step == 0:
                        found.append(at)
                    number += 1
                at += len(line)
        return found

    def count(self) -> int:
        """Return the number of rows."""
        with opened(self._path) as file:
            return sum(1 for line in file if line.strip())


class ParquetQueries:
    """Rows of a .parquet file. Row groups before the first row of a range are not read.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, open_parquet(path, "reading queries from a Parquet file")

    def rows(self, first: int = 0, offset: int = 0) -> Iterator[tuple[str, Query]]:
        """Yield (description of the row for messages, row), beginning with row ``first``; ``offset`` is ignored.

        Raises
        ------
        InputError
            A row group is larger than :data:`hopfuse.io.parquet.MOST_GROUP_BYTES`.
        """
        metadata = self._file.metadata
        group, at = 0, 0
        while group < metadata.num_row_groups and at + metadata.row_group(group).num_rows <= first:
            at += metadata.row_group(group).num_rows
            group += 1
        columns = [name for name in self._file.schema_arrow.names if name in COLUMNS]
        for number in range(group, metadata.num_row_groups):
            check_group(self._file, self._path, number, columns)
            for batch in read_batches(self._file, self._path, BATCH, number, columns):
                skipped = min(max(first - at, 0), len(batch))
                yield from self._of_batch(batch.slice(skipped), at + skipped)
                at += len(batch)

    def _of_batch(self, batch: Any, first: int) -> Iterator[tuple[str, Query]]:
        places = [f"{self._path}, row {first + row}" for row in range(len(batch))]
        names = batch.schema.names
        vectors: Sequence[Any] = [None] * len(batch)
        if "vector" in names:
            vectors = _arrow_vectors(batch.column("vector"), places)
            batch = batch.select([name for name in names if name != "vector"])
        rows = rows_of(batch, self._path) if batch.num_columns else [{} for _ in places]
        for number, (where, row, vector) in enumerate(zip(places, rows, vectors, strict=True), first):
            yield where, _query(row, number, where)._replace(vector=vector)

    def offsets(self, step: int) -> None:
        """Return None: rows are found through the file's row groups."""

    def count(self) -> int:
        """Return the number of rows, from the footer."""
        return int(self._file.metadata.num_rows)


class QueryRows:
    """Read ranges of rows of a file; consecutive ranges are read without seeking.

    Parameters
    ----------
    path : Path
        A .jsonl or .parquet file.
    """

    def __init__(self, path: Path) -> None:
        self._file = _kind_of(path)(path)
        self._next = -1
        self._rows: Iterator[tuple[str, Query]] = iter(())

    def read(self, first: int, count: int, offset: int = 0) -> list[Query]:
        """Return rows ``first`` .. ``first + count - 1``; ``offset`` is the byte of the first one in a .jsonl file."""
        if first != self._next:
            self._rows = self._file.rows(first, offset)
        found = [query for _, query in islice(self._rows, count)]
        self._next = first + len(found)
        return found


def count_queries(path: Path) -> int:
    """Return the number of rows of a file."""
    return _kind_of(path)(path).count()


def query_file(path: Path) -> JsonlQueries | ParquetQueries:
    """Return a reader for a file of queries, by its suffix."""
    return _kind_of(path)(path)


def _kind_of(path: Path) -> type[JsonlQueries] | type[ParquetQueries]:
    return JsonlQueries if check_suffix(path, "queries", ".jsonl", ".parquet") == ".jsonl" else ParquetQueries


def opened(path: Path) -> Any:
    """Open a file for reading; raise InputError if it cannot be read."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise InputError("missing", None, "{path} cannot be read: {reason}", path=path, reason=error.strerror) from None


def _query(row: Any, number: int, where: str) -> Query:
    if not isinstance(row, dict):
        refuse_row(where, "queries", row, "an object with id, text and entities")
    id, entities, vector = row.get("id"), row.get("entities"), row.get("vector")
    id = row.get("_id") if id is None else id
    texts = [row[key] for key in TEXT_KEYS if row.get(key) is not None]
    if id is not None and not is_id(id):
        refuse_value(where, "id", id, "a string or an integer")
    if texts and not isinstance(texts[0], str):
        refuse_value(where, "text", texts[0], "a string")
    if entities is not None and not (isinstance(entities, list) and all(map(is_id, entities))):
        refuse_value(where, "entities", entities, "a list of names or of entity numbers")
    own = str(number if id is None else id)
    return Query(own, texts[0] if texts else None, entities, None if vector is None else _vector(vector, where))


def _vector(values: Any, where: str) -> NDArray[np.float32]:
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        refuse_value(where, "vector", values, "a list of numbers")
    try:
        with np.errstate(over="raise"):
            return np.array(values, np.float32)
    except (OverflowError, FloatingPointError):
        refuse_value(where, "vector", values, "a list of numbers that float32 can hold", "finite")


def _arrow_vectors(column: Any, places: Sequence[str]) -> list[NDArray[np.float32] | None]:
    """Return the rows of a column of lists of numbers as views of one array."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    kind = column.type
    lists = arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind)
    if not lists or not (arrow.types.is_floating(kind.value_type) or arrow.types.is_integer(kind.value_type)):
        raise InputError(
            "type", "vector", "the column 'vector' holds {given}; it must hold lists of numbers", given=kind
        ).at(places[0])
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    absent = np.isnan(lengths) if lengths.dtype.kind == "f" else np.zeros(len(lengths), bool)
    ends = np.cumsum(np.where(absent, 0, lengths).astype(np.int64))
    with np.errstate(over="ignore"):  # becomes infinite, which is refused later
        values = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    starts = np.concatenate([[0], ends[:-1]])
    return [None if none else values[a:b] for none, a, b in zip(absent, starts, ends, strict=True)]
