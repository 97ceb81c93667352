"""Databases of ladybug, Kùzu's successor, as a source: a Cypher query for each table, read as Arrow record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .._validation import import_extra
from ..errors import InputError
from .tables import ROWS, TableReader, cannot_open, check_queries, existing, rejected, split_place, table_batches


class LadybugSource:
    """A ladybug database, read by one Cypher query for each table, all in one read-only transaction.

    A query has the columns of its table (:class:`hopfuse.io.source.Snapshot`), named by ``AS``. A column ``FLOAT[n]``
    is the vector; further columns of passages become metadata. ladybug does not stream results: all rows of a query are
    in memory at once.

    Parameters
    ----------
    path : path
    queries : mapping of str to str or sequence of str
        Query of each table; ``edges`` may have several.

    Raises
    ------
    InputError
        The database does not exist, or there is no query of passages.
    MissingExtraError
        ladybug is not installed.

    Examples
    --------
    >>> from hopfuse.stores.ladybug import LadybugSource
    >>> source = LadybugSource("graph.lbug", {
    ...     "passages": "MATCH (c:Chunk) RETURN c.id AS id, c.text AS text, c.embedding AS vector ORDER BY c.id",
    ...     "entities": "MATCH (e:Entity) RETURN e.name AS name ORDER BY e.name",
    ...     "edges": "MATCH (c:Chunk)-[:MENTIONS]->(e:Entity) RETURN c.id AS src_passage, e.name AS dst_entity",
    ... })  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], queries: Mapping[str, str | Sequence[str]]) -> None:
        self._ladybug = import_extra("ladybug", "reading a ladybug database")
        self._path = existing(Path(path), "a ladybug database")
        self._queries = check_queries("ladybug", queries)

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the database as one transaction sees it.

        Raises
        ------
        StoreError
            The database cannot be opened.
        """
        with ExitStack() as opened:
            try:
                database = self._ladybug.Database(os.fspath(self._path), read_only=True)
                opened.callback(database.close)
                connection = self._ladybug.Connection(database)
                opened.callback(connection.close)
                connection.execute("BEGIN TRANSACTION READ ONLY")
            except RuntimeError as error:
                raise cannot_open("ladybug", self._path, error) from None
            yield TableReader(partial(self._read, connection))

    def _read(self, connection: Any, table: str) -> Iterator[Any] | None:
        if table not in self._queries:
            return None
        return (batch for query in self._queries[table] for batch in _batches(connection, table, query))


def _batches(connection: Any, table: str, query: str) -> Iterator[Any]:
    try:
        result = connection.execute(query)
        if isinstance(result, list):
            raise InputError(
                "unsupported",
                table,
                "{field} is {given!r}, which is {count} queries; give one",
                given=query,
                count=len(result),
            )
        found = result.get_as_arrow(ROWS)
    except RuntimeError as error:
        raise rejected("ladybug", table, query, error) from None
    yield from table_batches(found.schema, found.to_batches(), table, {})


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> LadybugSource:
    """Return the source of ``ladybug:PATH``."""
    path, _ = split_place(place)
    return LadybugSource(path, queries)
