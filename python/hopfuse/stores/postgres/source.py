"""PostgreSQL with pgvector as a source: each table a query, all of one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import InputError, StoreError
from ...index.arrow_columns import empty_batch
from ..tables import TableReader
from .batches import batch_reader
from .connection import connect, database_errors, driver, place_of, snapshot_connection
from .queries import Query, check_queries, describe


class PostgresSource:
    """Tables of PostgreSQL, each by a query; all of them see one state of the database (REPEATABLE READ).

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/database``, or what else libpq takes. Give the password by ``PGPASSWORD`` or
        ``~/.pgpass``.
    passages : str
        A query with the columns ``id`` and ``text``, and optionally ``title`` and a vector, whatever its name: of
        pgvector's types ``vector`` and ``halfvec``, or an array of ``real`` or ``double precision``. Other columns are
        metadata, or one column ``metadata`` of type ``json`` or ``jsonb`` is.
    entities : str, optional
        A query with ``name``, and optionally a vector and ``aliases`` (``text[]``).
    edges : str or sequence of str, optional
        Queries with the columns that :class:`hopfuse.io.source.Snapshot` says.
    facts : str, optional
        A query with ``head``, ``relation``, ``tail`` and ``passage``.

    Raises
    ------
    InputError
        A URL that cannot be read; queries are checked when they are run.
    MissingExtraError
        psycopg or the ADBC driver is not installed (extra ``postgres``).

    Notes
    -----
    Rows come in binary (COPY) by ADBC, a batch of about 16 MiB at a time; ids of type ``uuid`` are strings. Rows have
    the order of the query: give it ORDER BY for the same index, byte for byte, each time.
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
        listed: list[str | None] = [edges] if isinstance(edges, str) else list(edges or ())
        given: dict[str, list[str | None]] = {
            "passages": [passages],
            "entities": [entities],
            "edges": listed,
            "facts": [facts],
        }
        self.queries = {table: [text for text in texts if text] for table, texts in given.items() if any(texts)}
        check_queries(self.queries)
        for name in ("psycopg", "adbc_driver_postgresql.dbapi"):
            driver(name)
        self.url = url

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Return the tables as they are now.

        Raises
        ------
        StoreError
            The server cannot be reached, or breaks off.
        InputError
            A query that the server refuses.
        """
        with connect(self.url) as control:
            described = describe(control, self.url, self.queries)
        with snapshot_connection(self.url) as connection:
            yield PostgresSnapshot(connection, self.url, described)


class PostgresSnapshot(TableReader):
    """One state of the database: see :class:`hopfuse.io.source.Snapshot`."""

    def __init__(self, connection: Any, url: str, queries: Sequence[Query]) -> None:
        super().__init__(self._table)
        self._connection, self._url, self._queries = connection, url, queries

    def _table(self, table: str) -> Iterator[Any] | None:
        queries = [query for query in self._queries if query.table == table]
        return self.read([(query, None) for query in queries]) if queries else None

    def read(self, wanted: Sequence[tuple[Query, str | None]]) -> Iterator[Any]:
        """Yield the batches of queries, each of all its rows or of those that a condition is true of."""
        for query, condition in wanted:
            with database_errors(self._url, f"--{query.table}"), self._connection.cursor() as cursor:
                cursor.execute(query.selecting(condition))
                reader = cursor.fetch_record_batch()
                dims = {name: column.modifier for name, column in query.columns.items()}
                turned = batch_reader(query.table, reader.schema, dims)
                yield turned(empty_batch(reader.schema))
                while (batch := _next(reader, self._url, query.table)) is not None:
                    yield turned(batch)

    def one_row(self, query: str) -> tuple[Any, ...]:
        """Return the one row of a query."""
        with database_errors(self._url), self._connection.cursor() as cursor:
            cursor.execute(query)
            rows = cursor.fetchall()
        return tuple(rows[0])


def _next(reader: Any, url: str, table: str) -> Any:
    """Return the next batch, or None; what fails half way comes as an error of Arrow, not of the driver."""
    try:
        return next(reader, None)
    except (OSError, ValueError) as error:
        said = str(error).split("]: ")[-1].strip().split("\n")[0]
        if "ERROR:" in said:
            raise InputError(f"--{table}: {said.split('ERROR:')[-1].strip()}; change it, or the rows") from None
        raise StoreError(f"{place_of(url)} broke off: {said}; try again when it is there") from None


def open_place(url: str, queries: Mapping[str, Sequence[str]]) -> PostgresSource:
    """Return the source of a URL and the queries of ``hopfuse build``."""
    check_queries(queries)
    one = {table: texts[0] for table, texts in queries.items() if table != "edges"}
    return PostgresSource(url, passages=one.pop("passages"), edges=queries.get("edges"), **one)
