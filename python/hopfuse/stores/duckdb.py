"""DuckDB databases as a source: a SQL query for each table, read as Arrow record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .._validation import import_extra
from .tables import (
    ROWS,
    TableReader,
    cannot_open,
    check_queries,
    existing,
    no_rows,
    rejected,
    split_place,
    table_batches,
)


class DuckDBSource:
    """A DuckDB database file, read by one query for each table.

    A query has the columns of its table (:class:`hopfuse.io.source.Snapshot`), named by ``AS``. A column ``FLOAT[n]``
    is the vector; further columns of passages become metadata. The file is opened read-only, and DuckDB then admits no
    writer: all queries see one state.

    Parameters
    ----------
    path : path
        A database file, or ``":memory:"`` for queries that read other files, such as
        ``SELECT * FROM 'parts/*.parquet'``.
    queries : mapping of str to str or sequence of str
        Query of each table; ``edges`` may have several.

    Raises
    ------
    InputError
        The file does not exist, or there is no query of passages.
    MissingExtraError
        DuckDB is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.stores.duckdb import DuckDBSource
    >>> passages = "SELECT 'a' AS id, 'Ada wrote.' AS text, [1, 0]::FLOAT[2] AS v, 1843 AS year"
    >>> hf.Index.build(DuckDBSource(":memory:", {"passages": passages}))
    Index(passages=1, entities=0, dim=2, graph=False, lexical=False, metric='ip', storage='float32')
    """

    def __init__(self, path: str | os.PathLike[str], queries: Mapping[str, str | Sequence[str]]) -> None:
        self._duckdb = import_extra("duckdb", "reading a DuckDB database")
        self._in_memory = os.fspath(path) == ":memory:"
        self._path = path if self._in_memory else existing(Path(path), "a DuckDB database file")
        self._queries = check_queries("DuckDB", queries)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the database, which does not change while it is read.

        Raises
        ------
        StoreError
            The file is not a database, or is open for writing elsewhere.
        """
        try:
            connection = self._duckdb.connect(os.fspath(self._path), read_only=not self._in_memory)
        except self._duckdb.Error as error:
            raise cannot_open("DuckDB", self._path, error) from None
        with closing(connection):
            yield TableReader(partial(self._read, connection))

    def _read(self, connection: Any, table: str) -> Iterator[Any] | None:
        if table not in self._queries:
            return None
        return (batch for query in self._queries[table] for batch in self._batches(connection, table, query))

    def _batches(self, connection: Any, table: str, query: str) -> Iterator[Any]:
        # A connection has one open result; a cursor is another connection to the same database.
        with closing(connection.cursor()) as cursor:
            try:
                found = cursor.sql(query)
                if found is None:
                    raise no_rows(table, query)
                reader = found.to_arrow_reader(ROWS)
                # A query that fails while its rows arrive raises an error of Arrow, not of DuckDB.
                yield from table_batches(reader.schema, reader, table, {})
            except (self._duckdb.Error, OSError) as error:
                raise rejected("DuckDB", table, query, error) from None


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> DuckDBSource:
    """Return the source of ``duckdb:PATH``."""
    path, _ = split_place(place)
    return DuckDBSource(path, queries)
