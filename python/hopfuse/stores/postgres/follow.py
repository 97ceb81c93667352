"""Keep a live index equal to the PostgreSQL tables that it was built from, by logical decoding.

The server's log says which rows changed. They are read again in one snapshot, with everything committed before it, so
at every seq the index equals the tables at one moment. The position in the log is committed with the changes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..._validation import check_unused
from ...errors import HopfuseError, InputError, StoreError
from ...extract import WordReader
from ...extract.added import AddedPassages
from ...extract.building import Readers, build_index, readers_of
from ...index import Index, LeftOut, LiveIndex
from ...index.contents import passage_vectors
from ...index.input import Inputs
from ...index.left_out import plain_reason
from ...io.skips import check_share
from ..applying import End, KnownRows, Reading, RowChanges, TouchedKeys, apply_changes
from ..failures import FACTS, VECTOR, Failure, Failures
from .connection import TransientError, connect, database_errors, snapshot_connection
from .followable import FollowState
from .pgoutput import UNCHANGED, LogRow, Transaction, Values, position_text, transactions
from .queries import ENDS, SqlQuery, describe, quoted
from .slot import KEYS, Slot, check_followable, shape_of
from .source import PostgresSnapshot

#: Bytes of the server's log without changes of the tables after which the slot is advanced.
_IDLE_BYTES = 1 << 24
_POLL_SECONDS = 0.1
_MOST_WAIT = 30.0


class PostgresFollower:
    """Applies the changes of PostgreSQL tables to an index, as its only writer.

    Parameters
    ----------
    directory : path
        An index that was built with a slot (:func:`hopfuse.stores.postgres.followed`).
    url : str
        The database that it was built from.
    encoder : Encoder, optional
        Encodes passages whose table has no vectors.
    reader : {"spacy"}, or a reader of facts, optional
        The reader of facts that the index was built with, if its tables have only passages. Words are read as they were
        at the build.
    skip_failed : float in [0, 100]
        Per cent of the passages that may be lacking, wholly or in part, before a step ends with an error; one may be,
        unless it is 0.

    Raises
    ------
    InputError
        The index was not built to be followed, is open for writing elsewhere, or was built with a reader of facts, and
        none is given.
    StoreError
        The server cannot be reached, the slot is gone, or it is not at the position of the index.

    Examples
    --------
    >>> from hopfuse.stores.postgres import PostgresFollower
    >>> with PostgresFollower("news", "postgresql:///news") as follower:  # doctest: +SKIP
    ...     follower.run()
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        url: str,
        *,
        encoder: Any = None,
        reader: Any = None,
        skip_failed: float = 100.0,
    ) -> None:
        self.directory, self._url, self._encoder = Path(directory), url, encoder
        self._reader = None if reader is None else readers_of(reader).facts
        self._share = check_share(skip_failed)
        self._connection: Any = None
        self._slot: Slot
        self._state: FollowState
        self._known: KnownRows | None = None
        self._added: AddedPassages | None = None
        self._seen = -1
        self._live: LiveIndex[Index] = Index.open(directory, writable=True, encoder=encoder)
        try:
            self._open_index()
            self._connect()
        except BaseException:
            self.close()
            raise

    @property
    def seq(self) -> int:
        """The seq of the index."""
        return self._live.refresh().seq

    @property
    def position(self) -> str:
        """The position in the server's log (LSN) up to which the index has all changes."""
        return position_text(self._state.position)

    @property
    def failures(self) -> list[Failure]:
        """What the index lacks of the rows, with the reasons. A row is read again when it changes."""
        return list(self._state.failures)

    def step(self) -> int | None:
        """Bring the index to the present state of the tables.

        Returns
        -------
        int or None
            The seq of the commit; None if nothing changed.

        Raises
        ------
        InputError
            A query no longer fits its table, or more is lacking than ``skip_failed`` allows. The index is unchanged,
            and the next step reads the rows again.
        StoreError
            The connection is lost, and the next step opens another; or the slot is gone.
        OSError
            The disk is full. The index is unchanged.
        """
        if self._connection is None:
            self._connect()
        try:
            return self._step()
        except StoreError:
            self._disconnect()
            raise

    def run(
        self,
        stop: threading.Event | None = None,
        *,
        poll: float = _POLL_SECONDS,
        on_commit: Callable[[int], None] = lambda seq: None,
        on_wait: Callable[[StoreError, float], None] = lambda error, seconds: None,
    ) -> None:
        """Follow until ``stop`` is set.

        If the server is unavailable (by its SQLSTATE, or because the connection is lost), try again after waits that
        grow to 30 s.

        Parameters
        ----------
        stop : threading.Event, optional
        poll : float
            Seconds between two reads of the server's log; ``NOTIFY`` of the slot's name ends a wait early.
        on_commit : callable
            Called with the seq of each commit.
        on_wait : callable
            Called with each error that is waited out, and the seconds of the wait.

        Raises
        ------
        InputError, StoreError, OSError
            As in :meth:`step`, except while the server is unavailable.
        """
        stop = stop or threading.Event()
        wait = poll
        while not stop.is_set():
            try:
                seq = self.step()
                if seq is not None:
                    on_commit(seq)
                else:
                    self._sleep(poll)
                wait = poll
            except TransientError as error:
                on_wait(error, wait)
                stop.wait(wait)
                wait = min(max(2 * wait, 1.0), _MOST_WAIT)

    def close(self) -> None:
        """Close the index and the connections; the slot stays, and the server keeps later changes for it."""
        self._disconnect()
        self._live.close()

    def __enter__(self) -> PostgresFollower:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---- One step ----

    def _step(self) -> int | None:
        slot = self._slot
        end = slot.end()
        if end == self._seen:
            return None
        with snapshot_connection(self._url) as connection:
            snapshot = PostgresSnapshot(connection, self._url, ())
            visible = _Visible(snapshot.one_row("SELECT pg_current_snapshot()::text")[0])
            end = slot.end()
            self._check_position(slot.position())
            queries = describe(self._connection, self._url, self._state.queries)
            tables = check_followable(self._connection, self._url, queries)
            shape = shape_of(snapshot.one_row, tables)
            touched, position, truncated = self._read_log(end, visible, queries)
            changed = shape != self._state.shape
            if truncated or changed:
                seq: int | None = self._build_anew(connection, queries, position, shape)
            elif touched:
                snapshot = PostgresSnapshot(connection, self._url, queries)
                seq = self._apply(_changes(snapshot, queries, touched), position, shape)
            else:
                self._skip(position, shape)
                seq = None
        if position == end:
            self._seen = end
        return seq

    def _read_log(self, end: int, visible: _Visible, queries: Sequence[SqlQuery]) -> tuple[TouchedKeys, int, bool]:
        """Return the touched keys, the position up to which the snapshot shows all, and if a table was truncated."""
        touched, position, truncated = TouchedKeys(), end, False
        for one in transactions(self._slot.messages(end)):
            if one.end <= self._state.position:
                continue
            if not visible.has(one):
                position = min(position, one.commit)
                continue
            truncated |= bool(one.truncated)
            _note_rows(touched, one.rows, queries)
        return touched, max(position, self._state.position), truncated

    def _apply(self, changes: RowChanges, position: int, shape: Mapping[str, str]) -> int:
        left_out = LeftOut(100)
        failures = self._state.failures.untouched(changes.touched)
        how = Reading(left_out, self._added, self._encoder)
        if self._known is None:
            self._known = KnownRows(self._live.refresh(), reads=self._added is not None)
        known, self._known = self._known, None  # until the commit
        with self._live.change() as change:
            applied = apply_changes(change, known, changes, how)
            failures.add_rows(left_out.rows)
            for lacks, reasons in applied.lacking.items():
                for id, reason in reasons.items():
                    failures.add_part(id, lacks, reason, applied.texts[id])
            new = sum(id not in known.passages for id in changes.touched.passages)
            failures.check(self._share, len(known.passages) + new)
            state = self._state.at(position, shape, failures)
            change.set_source(state.text)
        applied.update()
        self._known = known
        self._advance(state)
        self._compact_if_due()
        assert change.seq is not None
        return change.seq

    def _skip(self, position: int, shape: Mapping[str, str]) -> None:
        """Record a position without changes of the tables, at intervals: each record is a batch of the index's log."""
        if position - self._state.position >= _IDLE_BYTES:
            state = self._state.at(position, shape, self._state.failures)
            with self._live.change() as change:
                change.set_source(state.text)
            self._advance(state)

    def _build_anew(self, connection: Any, queries: Sequence[SqlQuery], position: int, shape: Mapping[str, str]) -> int:
        """Write a new generation from all rows: a table was truncated, altered or rewritten."""
        old, source = self._live.refresh(), _OpenSource(PostgresSnapshot(connection, self._url, queries))
        columns = (column for query in queries if query.table == "passages" for column in query.columns.values())
        encoder = old.encoder if any(column.is_vector for column in columns) else None
        about: Any = {"metric": old.metric, "storage": old.storage, "encoder": encoder, "scratch": self.directory}
        left_out = LeftOut(self._share)
        index, failures = self._rebuilt(old, source, {**about, "left_out": left_out})
        failures.add_rows(left_out.rows)
        if old.encoder is not None and index.dim is None:
            if self._encoder is None:
                raise InputError(
                    "missing",
                    "encoder",
                    "{field} is missing, which the vectors of the index need, since its tables have none; give it",
                )
            ids, texts = index.passage_ids, index.texts_to_index()

            def lacks(at: int, error: HopfuseError) -> None:
                failures.add_part(ids[at], VECTOR, plain_reason(error), texts[at])

            made = passage_vectors(self._encoder, texts, ids, lacks, index.metric)
            index = index.with_vectors(made, encoder=old.encoder)
        if old.lexical is not None:
            from ...lexical import BM25

            matrix = old.lexical
            bm25 = BM25.build(
                index.texts_to_index(),
                method=matrix.method,
                k1=matrix.k1,
                b=matrix.b,
                stopwords=matrix.stopwords,
                stemmer=matrix.stemmer,
            )
            index = index.with_lexical(bm25.matrix)
        KnownRows(index, reads=self._state.reads(index))
        state = self._state.at(position, shape, failures)
        self._live.close()
        try:
            index.with_source(state.text).save(self.directory)
        finally:
            self._live = Index.open(self.directory, writable=True, encoder=self._encoder)
            self._open_index()
        self._slot.advance(position)
        return self._live.seq

    def _rebuilt(self, old: Index, source: Any, options: Mapping[str, Any]) -> tuple[Index, Failures]:
        """Return the index of all rows, read by the readers that the index has, and what these could not read."""
        if self._added is None:
            return Index.build(source, **options), Failures()
        names = self._encoder if old.entity_corpus is not None else None
        words = None if old.words is None else WordReader.like(old.words)
        inputs = Inputs(passages=source, lexical=False, entity_vectors=names, **options)
        built = build_index(inputs, Readers(self._reader, words))
        memory, failures = built.memory, Failures()
        for at, reason in memory.failures.items():
            failures.add_part(memory.ids[at], FACTS, reason, f"{memory.titles[at]} {memory.texts[at]}")
        return built.index, failures

    def _advance(self, state: FollowState) -> None:
        self._state = state
        self._slot.advance(state.position)

    def _check_position(self, position: int) -> None:
        if position > self._state.position:
            raise StoreError(
                "changed",
                "slot",
                "{field} {slot} is at {position}, and the index at {known}: another reader advanced it, or it was "
                "created again; build the index anew by hopfuse build --slot",
                slot=self._state.slot,
                position=position_text(position),
                known=self.position,
            )

    def _compact_if_due(self) -> None:
        """Compact if the log has grown to a fifth of the index: opening the index reads the whole log."""
        sizes = {path.name.partition("-")[0]: path.stat().st_size for path in self.directory.glob("*-*.hopfuse")}
        if sizes.get("log", 0) > max(_IDLE_BYTES, sizes.get("generation", 0) // 5):
            self._live.compact()

    # ---- Connections ----

    def _open_index(self) -> None:
        index = self._live.refresh()
        self._state = FollowState.of(index.source, self.directory)
        self._added = self._readers_of(index)
        self._known = KnownRows(index, reads=self._added is not None)
        self._seen = -1

    def _readers_of(self, index: Index) -> AddedPassages | None:
        """Return what reads passages as those of the index were read; None if the tables have a graph of their own."""
        reads = self._state.reads(index)
        if reads and index.facts is not None and self._reader is None:
            raise InputError(
                "missing",
                "reader",
                "{field} is missing, which the index was built with: its tables have passages alone, in which a reader "
                "found entities and facts; give it",
            )
        if not reads or index.facts is None:
            check_unused("reader", self._reader, "the index was built without a reader of facts")
        return AddedPassages(index, self._reader) if reads else None

    def _connect(self) -> None:
        connection = connect(self._url)
        try:
            self._slot = Slot(connection, self._url, self._state.slot)
            self._check_position(self._slot.position())
            with database_errors(self._url):
                connection.execute(f"LISTEN {quoted(self._state.slot)}")
        except BaseException:
            connection.close()
            raise
        self._connection, self._seen = connection, -1

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = None

    def _sleep(self, seconds: float) -> None:
        """Wait for a notification, at most so long; a lost notification only costs the wait."""
        try:
            with database_errors(self._url):
                for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                    return
        except StoreError:
            self._disconnect()
            raise


class _Visible:
    """The transactions that a snapshot sees: ``xmin:xmax:xip,...`` in 64 bits, of which messages have the lower 32."""

    def __init__(self, text: str) -> None:
        _, most, running = text.split(":")
        self._most = int(most)
        self._running = {int(one) & 0xFFFFFFFF for one in running.split(",") if one}

    def has(self, one: Transaction) -> bool:
        """Return whether the snapshot sees a transaction."""
        ahead = (one.xid - self._most) & 0xFFFFFFFF
        return ahead >= 1 << 31 and one.xid not in self._running


class _OpenSource:
    """A snapshot that is already open, as a source."""

    def __init__(self, snapshot: PostgresSnapshot) -> None:
        self._snapshot = snapshot

    def snapshot(self) -> AbstractContextManager[PostgresSnapshot]:
        """Return the snapshot."""
        return nullcontext(self._snapshot)


def _changes(snapshot: PostgresSnapshot, queries: Sequence[SqlQuery], touched: TouchedKeys) -> RowChanges:
    found: dict[str, list[Any]] = {"passages": [], "entities": [], "edges": [], "facts": []}
    for query in queries:
        condition = _condition_of(query, touched)
        if condition is not None:
            found[query.table] += snapshot.read([(query, condition)])
    return RowChanges(touched, **found)


# ---- Rows that changed -----------------------------------------------------------------------------------------------


def _note_rows(touched: TouchedKeys, rows: Sequence[LogRow], queries: Sequence[SqlQuery]) -> None:
    """Add the keys of changed rows, before and after the change, to ``touched``."""
    for row in rows:
        for query in queries:
            names = [name for name in KEYS[query.table] if name in query.columns]
            if names and query.columns[names[0]].relation == row.relation:
                for values in _versions(row):
                    _note(touched, query, {name: _value(query, name, values) for name in names})


def _versions(row: LogRow) -> Iterator[Values]:
    """Yield the row before and after the change; unchanged values that are not sent are those before."""
    if row.old is not None:
        yield row.old
    if row.new is not None:
        before = row.old or {}
        yield {name: before.get(name, value) if value is UNCHANGED else value for name, value in row.new.items()}


def _value(query: SqlQuery, name: str, values: Values) -> Any:
    column = query.columns[name]
    found = values.get(column.attribute)
    if found is UNCHANGED:
        raise StoreError(
            "missing",
            query.table,
            "the server does not send {column} of a changed row of {field}, since the value is stored outside it; "
            "ALTER TABLE ... REPLICA IDENTITY FULL, and build the index anew",
            column=column.attribute,
        )
    return found if found is None else column.key(str(found))


def _note(touched: TouchedKeys, query: SqlQuery, values: dict[str, Any]) -> None:
    if query.table == "passages" and values["id"] is not None:
        touched.passages.add(values["id"])
    elif query.table == "entities" and values["name"] is not None:
        touched.entities.add(values["name"])
    elif query.table == "facts" and None not in values.values():
        touched.facts.add((values["head"], values["relation"], values["tail"]))
    elif query.table == "edges":
        ends: list[list[End]] = [
            [
                (what, values[name])
                for name, what in ENDS.items()
                if name.startswith(side) and values.get(name) is not None
            ]
            for side in ("src", "dst")
        ]
        touched.edges.update((src, dst) for src in ends[0] for dst in ends[1])


def _condition_of(query: SqlQuery, touched: TouchedKeys) -> str | None:
    """Return the condition on the rows to read again; None if there are none.

    It includes the edges and facts of touched passages and entities, since the index deletes them with these.
    """
    passages, entities = touched.passages, touched.entities
    found: list[str | None]
    if query.table == "passages":
        found = [query.having("id", passages)]
    elif query.table == "entities":
        found = [query.having("name", entities)]
    elif query.table == "facts":
        found = [query.having(name, entities) for name in ("head", "tail")]
        found += [query.having("passage", passages), query.having_all(("head", "relation", "tail"), touched.facts)]
    else:
        found = [query.having(name, passages if what == "passage" else entities) for name, what in ENDS.items()]
        found.append(query.having("passage", passages))
        both = touched.edges | {(dst, src) for src, dst in touched.edges}
        for src in ("passage", "entity"):
            for dst in ("passage", "entity"):
                pairs = [(a[1], b[1]) for a, b in both if (a[0], b[0]) == (src, dst)]
                found.append(query.having_all((f"src_{src}", f"dst_{dst}"), pairs))
    given = [condition for condition in found if condition is not None]
    return " OR ".join(given) if given else None
