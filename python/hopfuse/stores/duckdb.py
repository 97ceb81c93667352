"""DuckDB databases as a source: SQL in, Arrow record batches out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError, StoreError
from .tables import ROWS, TableReader, check_queries, existing, split_place, table_batches


class DuckDBSource:
    """A database file of DuckDB, read by a query for each table, all in one transaction.

    A query's columns are those of the table (:class:`hopfuse.io.source.Snapshot`), named by ``AS``. A column
    ``FLOAT[n]`` is the vector; other columns of passages are metadata.

    Parameters
    ----------
    path : path
        A database; with ``":memory:"`` queries read files, as ``SELECT * FROM 'parts/*.parquet'`` does.
    queries : mapping of str to str or sequence of str
        By table. ``edges`` may be several.

    Raises
    ------
    InputError
        No such file, no query of passages.
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
        try:
            self._duckdb = import_module("duckdb")
        except ImportError:
            raise MissingExtraError("duckdb", "duckdb", "reading a DuckDB database") from None
        self._in_memory = os.fspath(path) == ":memory:"
        self._path = path if self._in_memory else existing(Path(path), "the file of a DuckDB database")
        self._queries = check_queries("DuckDB", queries)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the state of the database in one transaction.

        Raises
        ------
        StoreError
            The file cannot be opened: it is no database, or another process writes to it.
        """
        try:
            connection = self._duckdb.connect(os.fspath(self._path), read_only=not self._in_memory)
        except self._duckdb.Error as error:
            raise StoreError(f"DuckDB cannot open {self._path}: {error}") from None
        try:
            connection.execute("BEGIN TRANSACTION")
            yield TableReader(partial(self._read, connection))
        finally:
            connection.close()

    def _read(self, connection: Any, table: str) -> Iterator[Any] | None:
        if table not in self._queries:
            return None
        return (batch for query in self._queries[table] for batch in self._batches(connection, table, query))

    def _batches(self, connection: Any, table: str, query: str) -> Iterator[Any]:
        try:
            found = connection.sql(query)
            if found is None:
                raise InputError(f"the query of {table}, {query!r}, gives no rows; give a SELECT")
            reader = found.to_arrow_reader(ROWS)
            # What fails half way comes as an error of Arrow, not of DuckDB.
            yield from table_batches(reader.schema, reader, table, {})
        except (self._duckdb.Error, OSError) as error:
            raise StoreError(f"DuckDB refuses the query of {table}, {query!r}: {error}") from None


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> DuckDBSource:
    """Return the store of ``duckdb:PATH``."""
    path, _ = split_place(place)
    return DuckDBSource(path, queries)
