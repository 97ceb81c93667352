"""SQLite databases as a source: SQL in, Arrow record batches out; vectors are BLOBs of float32."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, StoreError
from ..index.arrow_columns import arrow
from .tables import ROWS, TableReader, as_table, check_queries, existing, split_place, vector_list


class SQLiteSource:
    """A database file of SQLite, read by a query for each table, all in one transaction.

    A query's columns are those of the table (:class:`hopfuse.io.source.Snapshot`), named by ``AS``. A column of BLOBs
    is the vector, as little-endian float32 (sqlite-vec's form); other columns of passages are metadata. A column has
    one type in all rows, or integers beside real numbers.

    Parameters
    ----------
    path : path
    queries : mapping of str to str or sequence of str
        By table. ``edges`` may be several.

    Raises
    ------
    InputError
        No such file, no query of passages.

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
        self._path = existing(Path(path), "the file of an SQLite database")
        self._queries = check_queries("SQLite", queries)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the state of the database in one transaction.

        Raises
        ------
        StoreError
            The file cannot be opened or is no database.
        """
        try:
            connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"SQLite cannot open {self._path}: {error}") from None
        try:
            connection.execute("BEGIN")
            yield TableReader(partial(self._read, connection))
        finally:
            connection.close()

    def _read(self, connection: Any, table: str) -> Iterator[Any] | None:
        if table not in self._queries:
            return None
        return (batch for query in self._queries[table] for batch in _batches(connection, table, query))


def _batches(connection: Any, table: str, query: str) -> Iterator[Any]:
    try:
        rows = connection.execute(query)
        names = [column[0] for column in rows.description]
        kinds = [_kind(connection, table, query, name) for name in names]
        first = 0
        dims: dict[str, int] = {}
        while True:
            some = rows.fetchmany(ROWS)
            if some or not first:
                columns = zip(*some, strict=True) if some else ([] for _ in names)
                arrays = [
                    _vectors(values, table, name, first, dims) if kind == "blob" else _values(values, kind)
                    for name, kind, values in zip(names, kinds, columns, strict=True)
                ]
                yield as_table(table, arrow().record_batch(arrays, names=names), {})
            if not some:
                return
            first += len(some)
    except sqlite3.Error as error:
        raise StoreError(f"SQLite refuses the query of {table}, {query!r}: {error}") from None


def _kind(connection: Any, table: str, query: str, name: str) -> str:
    """Return the type of all values of a column; SQLite has one for each value."""
    column = '"' + name.replace('"', '""') + '"'
    found = {kind for (kind,) in connection.execute(f"SELECT DISTINCT typeof({column}) FROM ({query})")} - {"null"}
    if found == {"integer", "real"}:
        return "real"
    if len(found) > 1:
        raise InputError(
            f"{table} column {name!r} has values of the types {' and '.join(sorted(found))}; a column has one: "
            f"CAST({name} AS TEXT) AS {name}"
        )
    return found.pop() if found else "null"


def _values(values: Sequence[Any], kind: str) -> Any:
    pa = arrow()
    types = {"integer": pa.int64(), "real": pa.float64(), "text": pa.large_string(), "null": pa.null()}
    return pa.array(values, types[kind])


def _vectors(values: Sequence[bytes | None], table: str, name: str, first: int, dims: dict[str, int]) -> Any:
    """Return BLOBs as lists of float32; all have the length of the first row's."""
    for row, value in enumerate(values, first):
        where = f"{table} row {row} column {name!r}"
        if value is None:
            raise InputError(f"{where} is NULL; leave the row out, or give it a vector")
        dim = dims.setdefault(name, len(value) // 4)
        if not value or len(value) != 4 * dim:
            raise InputError(f"{where} has {len(value)} bytes; a vector of float32 like the first has {4 * dim or 4}")
    stored = np.frombuffer(b"".join(value for value in values if value), np.dtype("<f4")).astype(np.float32)
    return vector_list(stored.reshape(len(values), dims.get(name, 1)))


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> SQLiteSource:
    """Return the store of ``sqlite:PATH``."""
    path, _ = split_place(place)
    return SQLiteSource(path, queries)
