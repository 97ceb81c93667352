"""PostgreSQL tables and queries as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...io.arrow import arrow, empty_batch
from .. import tables
from ..tables import TableReader, check_queries
from .connection import connect, database_errors, driver, is_connected, snapshot_connection, unavailable, wrong_query
from .queries import SqlQuery, describe


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

    def __init__(self, connection: Any, url: str, queries: Sequence[SqlQuery]) -> None:
        super().__init__(self._table)
        self._connection, self._url, self._queries = connection, url, queries
        self._reading = ""

    def _table(self, table: str) -> Iterator[Any] | None:
        queries = [query for query in self._queries if query.table == table]
        return self.read([(query, None) for query in queries]) if queries else None

    def read(self, wanted: Sequence[tuple[SqlQuery, str | None]]) -> Iterator[Any]:
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
                    as_table = _batch_reader(query.table, reader.schema, dims)
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


# ---- Record batches --------------------------------------------------------------------------------------------------

#: Dtypes of components in pgvector's binary format, which is uint16 dim, uint16 0, dim components, all big-endian.
_VECTORS: dict[str, np.dtype[Any]] = {"vector": np.dtype(">f4"), "halfvec": np.dtype(">f2")}
_HEADER = 4


def _batch_reader(table: str, schema: Any, dims: Mapping[str, int]) -> Callable[[Any], Any]:
    """Return a function from batches of a query to batches of a table; ``dims`` are the dimensions of typed vectors.

    Raises
    ------
    InputError
        A column has a type that an index cannot hold. The function refuses columns that the table does not have.
    """
    _check_types(table, schema)

    def read(batch: Any) -> Any:
        columns = [
            _vector_column(column, dims[name]) if _is_pgvector(column.type) else _plain(column)
            for name, column in zip(schema.names, batch.columns, strict=True)
        ]
        return tables.as_table(table, arrow().record_batch(columns, names=schema.names), {})

    return read


def _check_types(table: str, schema: Any) -> None:
    for field in schema:
        name, kind = field.name, _type_name(field.type)
        if kind == "sparsevec":
            raise InputError(
                "type",
                table,
                "{field} gives {column!r}, a sparsevec; vectors must be dense: SELECT {column}::vector AS {column}",
                column=name,
            )
        if kind is not None and kind not in _VECTORS:
            raise InputError(
                "type",
                table,
                "{field} gives {column!r} of the type {given}, which an index cannot hold; cast it, such as "
                "{column}::text or {column}::float8, or leave it out",
                column=name,
                given=kind,
            )


def _is_pgvector(kind: Any) -> bool:
    return _type_name(kind) in _VECTORS


def _type_name(kind: Any) -> str | None:
    """Return the name of a type that an index holds as a vector or not at all; None for any other."""
    pa = arrow()
    if isinstance(kind, pa.OpaqueType):
        return str(kind.type_name)
    temporal = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind)
    other = pa.types.is_binary(kind) or pa.types.is_decimal(kind) or pa.types.is_interval(kind)
    return str(kind) if temporal or other else None


def _plain(column: Any) -> Any:
    """Return a column without Arrow's extension type; that of JSON becomes strings."""
    pa = arrow()
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column


def _vector_column(column: Any, dim: int) -> Any:
    """Return pgvector's vectors as lists of float32 or float16, without a Python object for each row.

    ``dim`` is the dimension of a column without rows, if above 0.

    Raises
    ------
    InputError
        The bytes are not in pgvector's format.
    """
    pa = arrow()
    name = column.type.type_name
    wire: np.dtype[Any] = _VECTORS[name]
    bytes_of = column.storage
    numbers = wire.newbyteorder("=")
    arrow_type = pa.float32() if name == "vector" else pa.float16()
    if not len(column):
        return pa.array([], pa.list_(arrow_type, dim) if dim > 0 else pa.list_(arrow_type))
    offsets = np.frombuffer(bytes_of.buffers()[1], np.int32)[bytes_of.offset : bytes_of.offset + len(column) + 1]
    data = np.frombuffer(bytes_of.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets).astype(np.int64)
    width = int(lengths[0])
    if column.null_count == 0 and (lengths == width).all() and width > _HEADER:
        rows = data.reshape(-1, width)
        _check_headers(rows[:, :_HEADER], (width - _HEADER) // wire.itemsize)
        values = np.ascontiguousarray(rows[:, _HEADER:]).view(wire).astype(numbers)
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1), arrow_type), values.shape[1])
    starts = (offsets[:-1] - offsets[0]).tolist()
    rows_of: list[NDArray[Any] | None] = [
        None if null else data[start + _HEADER : start + length].view(wire).astype(numbers)
        for start, length, null in zip(starts, lengths.tolist(), bytes_of.is_null().to_pylist(), strict=True)
    ]
    return pa.array(rows_of, pa.list_(arrow_type))


def _check_headers(headers: NDArray[np.uint8], dim: int) -> None:
    said = np.ascontiguousarray(headers).view(">u2")
    if not ((said[:, 0] == dim) & (said[:, 1] == 0)).all():
        raise InputError(
            "version", None, "a vector of PostgreSQL is not in pgvector's binary format; update pgvector or hopfuse"
        )
