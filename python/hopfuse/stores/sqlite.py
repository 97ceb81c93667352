"""SQLite databases as a source: a SQL query for each table; vectors are BLOBs of float32."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..io.arrow import arrow
from .tables import (
    ROWS,
    TableReader,
    as_table,
    cannot_open,
    check_queries,
    existing,
    no_rows,
    rejected,
    split_place,
    vector_list,
)

#: The second is raised for a message of SQLite's that quotes damaged text, the third at some damaged schemas.
_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)


class SQLiteSource:
    """An SQLite database file, read by one query for each table, all in one transaction.

    A query has the columns of its table (:class:`hopfuse.io.source.Snapshot`), named by ``AS``. The column of BLOBs is
    the vector, as little-endian float32 (the format of sqlite-vec); further columns of passages become metadata. A
    column has one type in all rows, or integers and real numbers.

    Parameters
    ----------
    path : path
    queries : mapping of str to str or sequence of str
        Query of each table; ``edges`` may have several.

    Raises
    ------
    InputError
        The file does not exist, or there is no query of passages.

    Examples
    --------
    >>> import sqlite3, tempfile, numpy as np, hopfuse as hf
    >>> from hopfuse.stores.sqlite import SQLiteSource
    >>> path = tempfile.mkdtemp() + "/notes.db"
    >>> with sqlite3.connect(path) as db:
    ...     _ = db.execute("CREATE TABLE notes (id TEXT, body TEXT, v BLOB)")
    ...     _ = db.execute("INSERT INTO notes VALUES ('a', 'Ada wrote.', ?)", [np.float32([1, 0]).tobytes()])
    >>> db.close()
    >>> hf.Index.build(SQLiteSource(path, {"passages": "SELECT id, body AS text, v FROM notes"}))
    Index(passages=1, entities=0, dim=2, graph=False, lexical=False, metric='ip', storage='float32')
    """

    def __init__(self, path: str | os.PathLike[str], queries: Mapping[str, str | Sequence[str]]) -> None:
        self._path = existing(Path(path), "an SQLite database file")
        self._queries = check_queries("SQLite", queries)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the database as one transaction sees it.

        Raises
        ------
        StoreError
            The file cannot be opened, or is not a database.
        """
        try:
            connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        except _ERRORS as error:
            raise cannot_open("SQLite", self._path, _reason(error)) from None
        with closing(connection):
            try:
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the first read fixes the state
            except _ERRORS as error:
                raise cannot_open("SQLite", self._path, _reason(error)) from None
            yield TableReader(partial(self._read, connection))

    def _read(self, connection: Any, table: str) -> Iterator[Any] | None:
        if table not in self._queries:
            return None
        return (batch for query in self._queries[table] for batch in _batches(connection, table, query))


def _reason(error: Exception) -> Exception:
    """Return an error that says something, which Python's error of SQLite's memory does not."""
    return sqlite3.DatabaseError("it is damaged, or memory is short") if isinstance(error, MemoryError) else error


def _batches(connection: Any, table: str, query: str) -> Iterator[Any]:
    text = query.strip().rstrip(";")
    try:
        rows = connection.execute(text)
        if rows.description is None:
            raise no_rows(table, query)
        names = [column[0] for column in rows.description]
        kinds = _kinds(connection, table, text, names)
        first = 0
        dims: dict[str, int] = {}
        while True:
            some = rows.fetchmany(ROWS)
            if some or not first:
                columns = zip(*some, strict=True) if some else ([] for _ in names)
                arrays = [
                    _vectors(values, dims, name) if kind == "blob" else _values(values, kind, table, name, first)
                    for name, kind, values in zip(names, kinds, columns, strict=True)
                ]
                yield as_table(table, arrow().record_batch(arrays, names=names), {})
            if not some:
                return
            first += len(some)
    except _ERRORS as error:
        raise rejected("SQLite", table, query, _reason(error)) from None


def _kinds(connection: Any, table: str, query: str, names: Sequence[str]) -> list[str]:
    """Return the type of each column; in SQLite every value has its own."""
    own = [f"c{at}" for at in range(len(names))]
    types = ", ".join(f"group_concat(DISTINCT typeof({name}))" for name in own)
    given = connection.execute(f"WITH q({', '.join(own)}) AS ({query}\n) SELECT {types} FROM q").fetchone()
    kinds = []
    for name, listed in zip(names, given, strict=True):
        found = set((listed or "null").split(",")) - {"null"}
        if found == {"integer", "real"}:
            found = {"real"}
        if len(found) > 1:
            raise InputError(
                "type",
                table,
                "{field} column {column!r} has values of the types {given}; give them one type: CAST({column} AS TEXT) "
                "AS {column}",
                column=name,
                given=" and ".join(sorted(found)),
            )
        kinds.append(found.pop() if found else "null")
    return kinds


def _values(values: Sequence[Any], kind: str, table: str, name: str, first: int) -> Any:
    pa = arrow()
    if name == "vector" and values and kind != "blob":
        found = "NULL" if values[0] is None else f"{kind}, {str(values[0])[:40]!r}"
        raise InputError(
            "type",
            table,
            "{field} row {row} column 'vector' is {given}; a vector is a BLOB of little-endian float32, which "
            "sqlite-vec's vec_f32(vector) makes from JSON",
            row=first,
            given=found,
        )
    types = {"integer": pa.int64(), "real": pa.float64(), "text": pa.large_string(), "null": pa.null()}
    try:
        return pa.array(values, types[kind])
    except pa.ArrowInvalid as error:
        raise InputError(
            "type",
            table,
            "{field} column {column!r}, after row {row}: {error}",
            column=name,
            row=first,
            error=error,
        ) from None


def _vectors(values: Sequence[bytes | None], dims: dict[str, int], name: str) -> Any:
    """Return BLOBs as lists of float32; one whose length is not that of the first, or a NULL, as a list of its own.

    What is no whole number of float32 is a list with a null, which is refused with its row.
    """
    first = next((value for value in values if value), b"")
    dim = dims.setdefault(name, len(first) // 4) or 1
    if values and all(value is not None and len(value) == 4 * dim for value in values):
        stored = np.frombuffer(b"".join(value for value in values if value), np.dtype("<f4")).astype(np.float32)
        return vector_list(stored.reshape(len(values), dim))
    pa = arrow()
    return pa.array([_numbers(value, dim) for value in values], pa.list_(pa.float32()))


def _numbers(blob: bytes | None, dim: int) -> list[float | None] | None:
    if blob is None:
        return None
    return [None] * dim if len(blob) % 4 else np.frombuffer(blob, np.dtype("<f4")).tolist()


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> SQLiteSource:
    """Return the source of ``sqlite:PATH``."""
    path, _ = split_place(place)
    return SQLiteSource(path, queries)
