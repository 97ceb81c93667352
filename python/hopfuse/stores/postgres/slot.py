"""A replication slot and its publication: create, read, advance and drop them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ...errors import InputError, StoreError
from .connection import TransientError, database_errors, place_of
from .pgoutput import position_of, position_text
from .queries import ENDS, SqlQuery, quoted

_NAME = re.compile(r"[a-z0-9_]{1,63}")
#: The columns that identify a changed row, for each table of the index.
KEYS = {"passages": ("id",), "entities": ("name",), "edges": tuple(ENDS), "facts": ("head", "relation", "tail")}
_FLUSH_SECONDS = 30.0


class Slot:
    """A permanent slot of logical decoding by pgoutput, and the publication of the same name.

    Parameters
    ----------
    connection : psycopg.Connection
        A connection in autocommit mode.
    """

    def __init__(self, connection: Any, url: str, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise InputError(
                "syntax",
                "slot",
                "{field} is {given!r}; a name has 1 to 63 of the characters a-z, 0-9 and _",
                given=name,
            )
        self._connection, self._url, self.name = connection, url, name

    def create(self, tables: Collection[int]) -> int:
        """Create the publication of some tables and the slot, and return its position.

        Raises
        ------
        InputError
            Logical decoding is off, the user lacks the permission, or the slot exists.
        """
        with self._errors():
            (level,) = self._row("SHOW wal_level")
            if level != "logical":
                raise InputError(
                    "unsupported",
                    None,
                    "the server's wal_level is {given}; logical decoding needs {allowed}: ALTER SYSTEM SET wal_level = "
                    "{allowed}, and restart the server",
                    given=level,
                    allowed="logical",
                )
            if self._rows("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", self.name):
                raise InputError(
                    "exists",
                    "slot",
                    "{field} {given} exists; give another name, or drop it: hopfuse follow --drop",
                    given=self.name,
                )
            listed = self._rows("SELECT oid::regclass::text FROM pg_class WHERE oid = ANY(%s::oid[])", list(tables))
            self._connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(self.name)}")
            self._connection.execute(
                f"CREATE PUBLICATION {quoted(self.name)} FOR TABLE {', '.join(name for (name,) in sorted(listed))} "
                "WITH (publish_via_partition_root = true)"
            )
            self._connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self.name,))
            return self.position()

    def drop(self) -> None:
        """Drop the slot and its publication, if they exist; the server then keeps no log for them."""
        with self._errors():
            self._connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                (self.name,),
            )
            self._connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(self.name)}")

    def position(self) -> int:
        """Return the position up to which the slot was read; the server keeps the log after it.

        Raises
        ------
        StoreError
            The slot or the publication is gone, or the server removed log that the slot needs.
        """
        found = self._rows(
            "SELECT confirmed_flush_lsn::text, coalesce(wal_status, '') FROM pg_replication_slots "
            "WHERE slot_name = %s AND database = current_database() AND plugin = 'pgoutput'",
            self.name,
        )
        published = self._rows("SELECT 1 FROM pg_publication WHERE pubname = %s", self.name)
        if not found or not published:
            what = "slot" if not found else "publication"
            raise StoreError(
                "missing",
                "slot",
                "{place} has no {what} {given}, so the changes since then are unknown; build the index anew by hopfuse "
                "build --slot",
                place=place_of(self._url),
                what=what,
                given=self.name,
            )
        position, status = found[0]
        if status == "lost":
            raise StoreError(
                "changed",
                "slot",
                "{field} {given} is lost: the server removed log that it needs (max_slot_wal_keep_size); build the "
                "index anew by hopfuse build --slot",
                given=self.name,
            )
        return position_of(position)

    def end(self) -> int:
        """Return the end of the server's log; every commit that is visible now is before it."""
        return position_of(self._row("SELECT pg_current_wal_insert_lsn()::text")[0])

    def messages(self, until: int) -> Iterator[bytes]:
        """Yield the messages of the slot up to a position, without advancing it."""
        with self._errors():
            self._wait_for_flush(until)
            with self._connection.cursor(binary=True) as cursor:
                rows = cursor.stream(
                    "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, NULL, 'proto_version', '1', "
                    "'publication_names', %s)",
                    (self.name, position_text(until), quoted(self.name)),
                )
                for (data,) in rows:
                    yield data

    def advance(self, position: int) -> None:
        """Let the server remove its log before a position."""
        with self._errors():
            self._connection.execute(
                "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
                "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn",
                (position_text(position), self.name, position_text(position)),
            )

    def _wait_for_flush(self, position: int) -> None:
        """Wait until the log is flushed: decoding reads only flushed log, and a commit can be visible before that."""
        until = time.monotonic() + _FLUSH_SECONDS
        while position_of(self._row("SELECT pg_current_wal_flush_lsn()::text")[0]) < position:
            if time.monotonic() > until:
                raise TransientError(
                    "failed",
                    None,
                    "{place} did not flush its log within {allowed} s",
                    place=place_of(self._url),
                    allowed=_FLUSH_SECONDS,
                )
            time.sleep(0.005)

    def _errors(self) -> AbstractContextManager[None]:
        return database_errors(self._url, f"slot {self.name}", "slot")

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._errors():
            return list(self._connection.execute(query, values or None).fetchall())

    def _row(self, query: str) -> tuple[Any, ...]:
        return self._rows(query)[0]


def check_followable(connection: Any, url: str, queries: Sequence[SqlQuery]) -> set[int]:
    """Return the tables (oids) whose changes must be followed.

    Raises
    ------
    InputError
        What the server sends of a changed row does not identify the query's row; the message says what to alter.
    """
    tables = set()
    for query in queries:
        keys = {name: query.columns[name] for name in KEYS[query.table] if name in query.columns}
        for name, column in keys.items():
            if not column.attribute:
                raise InputError(
                    "unsupported",
                    query.table,
                    "{field} computes {column!r}, which then does not identify a changed row; to follow the table, "
                    "select one of its columns",
                    column=name,
                )
        relations = {column.relation for column in query.columns.values() if column.attribute}
        if len(relations) > 1:
            raise InputError(
                "unsupported",
                query.table,
                "{field} joins {count} tables; to follow it, select from one: changes of the others would be missed",
                count=len(relations),
            )
        if query.table == "edges" and {"src_entity", "dst_entity"} <= set(query.columns) - {
            "src_passage",
            "dst_passage",
        }:
            _check_stated(query)
        (relation,) = relations
        _check_identity(connection, url, query, relation, {column.attribute for column in keys.values()})
        tables.add(relation)
    return tables


def _check_stated(query: SqlQuery) -> None:
    if "passage" not in query.columns:
        raise InputError(
            "missing",
            "edges",
            "{field} between entities has no column 'passage'; to follow them, select the id of the passage that "
            "states each, or NULL::bigint AS passage",
        )


def _check_identity(connection: Any, url: str, query: SqlQuery, relation: int, needed: set[str]) -> None:
    with database_errors(url, f"the query of {query.table}", query.table):
        name, kind, identity = connection.execute(
            "SELECT oid::regclass::text, relkind::text, relreplident::text FROM pg_class WHERE oid = %s", (relation,)
        ).fetchone()
        sent = connection.execute(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
            "WHERE i.indrelid = %s AND CASE %s WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END",
            (relation, identity),
        ).fetchall()
    if kind not in ("r", "p"):
        raise InputError(
            "unsupported",
            query.table,
            "{field} selects from {given}, which is not a table; to follow it, select from a table",
            given=name,
        )
    if identity != "f" and not needed <= {attribute for (attribute,) in sent}:
        raise InputError(
            "unsupported",
            query.table,
            "the server sends updated and deleted rows of {relation} without {columns}: ALTER TABLE {relation} REPLICA "
            "IDENTITY FULL, or make these its primary key",
            relation=name,
            columns=", ".join(sorted(needed)),
        )


def shape_of(one_row: Callable[[str], tuple[Any, ...]], tables: Collection[int]) -> Mapping[str, str]:
    """Return a digest for each table that changes with its columns, and when the table is rewritten.

    A rewrite (a new ``relfilenode``) changes rows without a message in the log. ``one_row`` runs a query in the
    snapshot whose rows are read, and returns its row.
    """
    (found,) = one_row(
        "SELECT coalesce(string_agg(word, ',' ORDER BY word), '') FROM (SELECT c.oid::text || '=' || "
        "md5(c.relfilenode::text || string_agg(a.attname || ' ' || a.atttypid::text || ' ' || a.atttypmod::text, ',' "
        "ORDER BY a.attnum)) AS word FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.oid IN ("
        f"{', '.join(map(str, sorted(tables)))}) AND a.attnum > 0 AND NOT a.attisdropped GROUP BY c.oid) AS words"
    )
    return dict(word.split("=") for word in str(found).split(",") if word)
