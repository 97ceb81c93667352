"""PostgreSQL with pgvector as a source: one query for each table, all in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import InputError
from ...io.arrow import empty_batch
from ..tables import TableReader, check_queries
from .batches import batch_reader
from .connection import connect, database_errors, driver, is_connected, snapshot_connection, unavailable, wrong_query
from .queries import Query, describe


class PostgresSource:
    """Tables of PostgreSQL, each read by a query; all queries see one state of the database (REPEATABLE READ).

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/database``, or any other form that libpq accepts. Give the password in
        ``PGPASSWORD`` or ``~/.pgpass``.
    passages : str
        A query with the columns ``id`` and ``text``, and optionally ``title`` and a vector column of any name: of
        pgvector's types ``vector`` and ``halfvec``, or an array of ``real`` or ``double precision``. Other columns
        become metadata; alternatively one column ``metadata`` of type ``json`` or ``jsonb``.
    entities : str, optional
        A query with ``name``, and optionally a vector and ``aliases`` (``text[]``).
    edges : str or sequence of str, optional
        Queries with the columns of :class:`hopfuse.io.source.Snapshot`.
    facts : str, optional
        A query with ``head``, ``relation``, ``tail`` and ``passage``.

    Raises
    ------
    InputError
        The URL cannot be parsed. Queries are checked when they run.
    MissingExtraError
        psycopg or the ADBC driver is not installed (extra ``postgres``).

    Notes
    -----
    ADBC reads rows in binary (COPY), about 16 MiB at a time. Ids of type ``uuid`` become strings. Rows keep the order
    of the query: use ORDER BY if the index must be the same, byte for byte, each time.
    """

    def __init__(
        self,
        url: str,
        *,
        passages: str,
        entities: str | None = None,
        edges: str | Sequence[str] | None = None,
        facts: str | None = None,
    ) -> None:
        given = {"passages": passages, "entities": entities, "edges": edges, "facts": facts}
        self.queries = check_queries("PostgreSQL", {table: texts for table, texts in given.items() if texts})
        for name in ("psycopg", "adbc_driver_postgresql.dbapi"):
            driver(name)
        self.url = url

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Return the tables as they are now.

        Raises
        ------
        StoreError
            The server cannot be reached, or the connection is lost.
        InputError
            The server rejects a query.
        """
        with connect(self.url) as control:
            described = describe(control, self.url, self.queries)
        with snapshot_connection(self.url) as connection:
            yield PostgresSnapshot(connection, self.url, described)


class PostgresSnapshot(TableReader):
    """One state of the database: see :class:`hopfuse.io.source.Snapshot`. It reads one table at a time."""

    def __init__(self, connection: Any, url: str, queries: Sequence[Query]) -> None:
        super().__init__(self._table)
        self._connection, self._url, self._queries = connection, url, queries
        self._reading = ""

    def _table(self, table: str) -> Iterator[Any] | None:
        queries = [query for query in self._queries if query.table == table]
        return self.read([(query, None) for query in queries]) if queries else None

    def read(self, wanted: Sequence[tuple[Query, str | None]]) -> Iterator[Any]:
        """Yield the batches of queries, each restricted to the rows that meet its condition, if it has one."""
        for query, condition in wanted:
            if self._reading:
                raise InputError(
                    "busy",
                    query.table,
                    "{field} cannot be read before {reading} is read to its end",
                    reading=self._reading,
                )
            self._reading = query.table
            try:
                what = f"the query of {query.table}"
                with database_errors(self._url, what, query.table), self._connection.cursor() as cursor:
                    cursor.execute(query.selecting(condition))
                    reader = cursor.fetch_record_batch()
                    dims = {name: column.modifier for name, column in query.columns.items()}
                    as_table = batch_reader(query.table, reader.schema, dims)
                    yield as_table(empty_batch(reader.schema))
                    while (batch := self._next(reader, query.table)) is not None:
                        yield as_table(batch)
            finally:
                self._reading = ""

    def one_row(self, query: str) -> tuple[Any, ...]:
        """Return the one row of a query."""
        with database_errors(self._url), self._connection.cursor() as cursor:
            cursor.execute(query)
            rows = cursor.fetchall()
        return tuple(rows[0])

    def _next(self, reader: Any, table: str) -> Any:
        """Return the next batch, or None. A failure while rows arrive is Arrow's error, which has no SQLSTATE."""
        try:
            return next(reader, None)
        except (OSError, ValueError) as error:
            said = str(error).split("]: ")[-1].removeprefix("ERROR:").strip().split("\n")[0]
            if is_connected(self._connection):
                raise wrong_query(said).at(f"the query of {table}", table) from None
            raise unavailable(self._url, said) from None


def open_place(url: str, queries: Mapping[str, Sequence[str]]) -> PostgresSource:
    """Return the source of a URL and the queries of ``hopfuse build``."""
    checked = check_queries("PostgreSQL", queries)
    edges = checked.pop("edges", None)
    return PostgresSource(url, edges=edges, **{table: texts[0] for table, texts in checked.items()})
