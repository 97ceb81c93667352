"""Keep a live index equal to the tables of PostgreSQL that it was built from, by logical decoding.

The log says which rows changed; they are read again in one snapshot, with everything that was committed before it. So
the index is, at every seq, the tables at one moment. The position in the log is kept in the batch of the changes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import InputError, StoreError
from ...index import Index, LiveIndex
from ..applying import KnownRows, apply_changes
from ..touched import Changes, Touched
from .changed_rows import condition_of, note_rows
from .connection import connect, database_errors, snapshot_connection
from .followable import State
from .pgoutput import Transaction, position_text, transactions
from .queries import Query, describe, quoted
from .slot import Slot, check_followable, shape_of
from .source import PostgresSnapshot

#: Bytes of the server's log without changes of the tables, after which the slot lets go of them.
_IDLE_BYTES = 1 << 24
_POLL_SECONDS = 0.1
_MOST_WAIT = 30.0


class PostgresFollower:
    """The one writer of an index, which brings it to the state of its tables again and again.

    Parameters
    ----------
    directory : path
        An index that was built with a slot.
    url : str
        The database that it was built from.
    encoder : Encoder, optional
        Gives vectors to passages that have none in their table.

    Raises
    ------
    InputError
        The index was not built to be followed, or is open for writing elsewhere.
    StoreError
        The server cannot be reached; the slot is gone, or is not where the index left it.

    Examples
    --------
    >>> from hopfuse.stores.postgres import PostgresFollower
    >>> with PostgresFollower("news", "postgresql:///news") as follower:  # doctest: +SKIP
    ...     follower.run()
    """

    def __init__(self, directory: str | os.PathLike[str], url: str, *, encoder: Any = None) -> None:
        self.directory, self._url, self._encoder = Path(directory), url, encoder
        self._connection: Any = None
        self._slot: Slot
        self._state: State
        self._known: KnownRows
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
        """Up to where in the server's log the index has everything, as PostgreSQL writes it."""
        return position_text(self._state.position)

    def step(self) -> int | None:
        """Bring the index to the state that the tables have now.

        Returns
        -------
        int or None
            The seq of the commit; None where nothing changed.

        Raises
        ------
        InputError
            A row that the index cannot have: the index stays as it was, and the next step reads the row anew.
        StoreError
            The connection is lost (the next step opens another), or the slot.
        OSError
            The disk is full; the index stays as it was.
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
        """Follow until ``stop`` is set; a lost connection is opened again, after longer and longer waits up to 30 s.

        Parameters
        ----------
        stop : threading.Event, optional
        poll : float
            Seconds between looks at the server's log; ``NOTIFY`` of the slot's name ends one early.
        on_commit, on_wait : callable
            Told of the seq of each commit; of each error that is waited out, and for how long.

        Raises
        ------
        InputError, StoreError, OSError
            As :meth:`step`, but for a connection that is lost.
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
            except StoreError as error:
                if self._connection is not None or not _is_passing(error):
                    raise
                on_wait(error, wait)
                stop.wait(wait)
                wait = min(max(2 * wait, 1.0), _MOST_WAIT)

    def close(self) -> None:
        """Let go of the index and of the connections; the slot stays, and keeps what comes."""
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
                seq: int | None = self._build_anew(PostgresSnapshot(connection, self._url, queries), position, shape)
            elif touched:
                snapshot = PostgresSnapshot(connection, self._url, queries)
                seq = self._apply(_changes(snapshot, queries, touched), position, shape)
            else:
                self._pass_over(position, shape)
                seq = None
        if position == end:
            self._seen = end
        return seq

    def _read_log(self, end: int, visible: _Visible, queries: Sequence[Query]) -> tuple[Touched, int, bool]:
        """Return what was touched up to an end, and up to where all of it can be seen in the snapshot."""
        touched, position, truncated = Touched(), end, False
        for one in transactions(self._slot.messages(end)):
            if one.end <= self._state.position:
                continue
            if not visible.has(one):
                position = min(position, one.commit)
                continue
            truncated |= bool(one.truncated)
            note_rows(touched, one.rows, queries)
        return touched, max(position, self._state.position), truncated

    def _apply(self, changes: Changes, position: int, shape: Mapping[str, str]) -> int:
        with self._live.change() as change:
            note = apply_changes(change, self._known, changes)
            change.set_source(self._state.text(position, shape))
        note()
        self._moved(position, shape)
        self._compact_if_due()
        assert change.seq is not None
        return change.seq

    def _pass_over(self, position: int, shape: Mapping[str, str]) -> None:
        """Note what had no change of the tables, now and then: each note is a batch of the index's log."""
        if position - self._state.position >= _IDLE_BYTES:
            with self._live.change() as change:
                change.set_source(self._state.text(position, shape))
            self._moved(position, shape)

    def _build_anew(self, snapshot: PostgresSnapshot, position: int, shape: Mapping[str, str]) -> int:
        """Write a new generation of all rows: a table was truncated, or has other columns, or was rewritten."""
        old = self._live.refresh()
        index = Index.build(_Fixed(snapshot), metric=old.metric, storage=old.storage, scratch=self.directory)
        if old.encoder is not None and index.dim is None:
            if self._encoder is None:
                raise InputError("the vectors of the index are an encoder's; give encoder= (--encoder)")
            index = index.with_vectors(self._encoder.encode_passages(index.texts_to_index()), encoder=old.encoder)
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
        KnownRows(index)
        self._live.close()
        try:
            index.with_source(self._state.text(position, shape)).save(self.directory)
        finally:
            self._live = Index.open(self.directory, writable=True, encoder=self._encoder)
            self._open_index()
        self._slot.advance(position)
        return self._live.seq

    def _moved(self, position: int, shape: Mapping[str, str]) -> None:
        self._state = State(self._state.slot, position, self._state.queries, shape)
        self._slot.advance(position)

    def _check_position(self, position: int) -> None:
        if position > self._state.position:
            raise StoreError(
                f"the slot {self._state.slot} is at {position_text(position)}, and the index at {self.position}: "
                "another "
                "reader moved it, or it was made anew; build the index anew with hopfuse build --slot"
            )

    def _compact_if_due(self) -> None:
        """Compact where the log has grown to a fifth of the index: opening reads all of it."""
        sizes = {path.name.partition("-")[0]: path.stat().st_size for path in self.directory.glob("*-*.hopfuse")}
        if sizes.get("log", 0) > max(_IDLE_BYTES, sizes.get("generation", 0) // 5):
            self._live.compact()

    # ---- Connections ----

    def _open_index(self) -> None:
        index = self._live.refresh()
        self._state = State.of(index.source, self.directory)
        self._known = KnownRows(index)
        self._seen = -1

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
        """Wait, or until somebody notifies; a message that is lost costs the wait, and no more."""
        try:
            with database_errors(self._url):
                for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                    return
        except StoreError:
            self._disconnect()
            raise


def _is_passing(error: StoreError) -> bool:
    """Return whether to try again: the server may come back, a slot does not."""
    return "broke off" in str(error) or "cannot be reached" in str(error)


class _Visible:
    """Which transactions a snapshot sees: ``xmin:xmax:xip,...`` of 64 bits; messages have the lower 32 of them."""

    def __init__(self, text: str) -> None:
        _, most, running = text.split(":")
        self._most = int(most)
        self._running = {int(one) & 0xFFFFFFFF for one in running.split(",") if one}

    def has(self, one: Transaction) -> bool:
        """Return whether what was committed is seen."""
        ahead = (one.xid - self._most) & 0xFFFFFFFF
        return ahead >= 1 << 31 and one.xid not in self._running


class _Fixed:
    """A snapshot that is open already, as a source."""

    def __init__(self, snapshot: PostgresSnapshot) -> None:
        self._snapshot = snapshot

    def snapshot(self) -> AbstractContextManager[PostgresSnapshot]:
        """Return it."""
        return nullcontext(self._snapshot)


def _changes(snapshot: PostgresSnapshot, queries: Sequence[Query], touched: Touched) -> Changes:
    found: dict[str, list[Any]] = {"passages": [], "entities": [], "edges": [], "facts": []}
    for query in queries:
        condition = condition_of(query, touched)
        if condition is not None:
            found[query.table] += snapshot.read([(query, condition)])
    return Changes(touched, **found)
