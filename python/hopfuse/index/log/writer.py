"""The writer of an index's directory: commits and compaction."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...errors import InputError
from ...types.graph import MAX_EDGE_TYPES, MAX_NODES
from ..change import Change
from ..contents import Contents, text_to_index
from ..file.generations import log_path, new_generation, point_to
from ..file.mapping import write_file
from ..names import Names
from ..parts.encoder import EncoderInfo
from ..supports import Deletions
from .frames import Frame, LogWriter, frame_bytes, write_log
from .records import LogRecord, encode
from .state import State, first_state, moved_records, open_generation

#: If a node's edges weigh more, no edges can be added, since their sums might exceed float32.
MOST_DEGREE = 2.0**120
_LOW_PRIORITY = 10

Kind = TypeVar("Kind", bound=Contents)


class IndexWriter(Generic[Kind]):
    """The only writer of a directory. It checks changes one by one, and syncs those of several threads together."""

    def __init__(self, kind: type[Kind], directory: Path, state: State[Kind], encoder: Any) -> None:
        self.encoder, self.closed = encoder, False
        self._kind, self._directory, self._durable = kind, directory, state
        self._checking, self._writing, self._compacting = threading.RLock(), threading.Lock(), threading.Lock()
        self._pending: list[_Commit] = []
        self._has_leader = False
        self._since: list[_Commit] | None = None  # commits since the start of a compaction
        self._log: LogWriter | None = None
        self._names: Names | None = None
        self._most: tuple[Kind, float] | None = None
        if state.header is not None:
            self._open_log()

    @property
    def state(self) -> State[Kind]:
        """The committed state."""
        return self._durable

    def check_open(self) -> None:
        """Refuse to change a closed index."""
        if self.closed:
            raise InputError("denied", None, "the index is closed; open it again to change it")

    def commit(self, change: Change) -> int:
        """Check a change, write it to the disk, and return its seq."""
        if change.merges:
            return self._commit_alone(change)
        with self._checking:
            mine = self._checked(change)
            if mine is None:
                return self._durable.seq + len(self._pending)
            leads, self._has_leader = not self._has_leader, True
        if leads or self._wait(mine):
            try:
                with self._writing:
                    self._write()
            finally:
                with self._checking:
                    self._choose_leader()
        if mine.error is not None:
            raise mine.error
        return mine.seq

    def preview(self, change: Change) -> Deletions:
        """Check a change, and return what it would delete."""
        if not change.merges:
            with self._checking:
                return change.deletions(self._current_names(), self._terms_of)
        with self._writing, self._checking:  # a merge is made from all rows of the index
            self._write()
            self._forget()
            return change.deletions(self._current_names(), self._terms_of)

    def _current_names(self) -> Names:
        self.check_open()
        if self._names is None:
            self._names = Names(self._durable.base, self._durable.rows())
        return self._names

    def _checked(self, change: Change) -> _Commit | None:
        """Check a change, and let it wait to be written; None if it changes nothing."""
        names = self._current_names()
        arrays = change.arrays(names, self._terms_of)
        if not arrays:
            return None
        batch = LogRecord(arrays, names.slots)
        self._check_limits(batch, names)
        if sum(batch.after) > MAX_NODES:
            raise InputError(
                "limit",
                None,
                "the index would have {given} slots of passages and entities; {allowed} are allowed: compact it",
                given=sum(batch.after),
                allowed=MAX_NODES,
            )
        names.apply(batch)
        mine = _Commit(batch, encode(arrays), time.time_ns() // 1000)
        self._pending.append(mine)
        return mine

    def _commit_alone(self, change: Change) -> int:
        """Commit a change that is made from all rows of the index, after those that wait and before all others."""
        with self._writing, self._checking:
            self._write()
            self._forget()
            mine = self._checked(change)
            if mine is None:
                return self._durable.seq
            self._write()
        if mine.error is not None:
            raise mine.error
        return mine.seq

    def _wait(self, mine: _Commit) -> bool:
        """Wait until a commit is written or its thread becomes the leader, which writes; return whether it does."""
        try:
            mine.woken.acquire()
        except BaseException:  # a signal's
            with self._checking:
                mine.is_left = True
                if mine.leads:
                    self._choose_leader()
            raise
        return mine.leads

    def _choose_leader(self) -> None:
        """Make one of the threads that wait the leader."""
        heir = next((one for one in self._pending if not one.is_left), None)
        self._has_leader = heir is not None
        if heir is not None:
            heir.leads = True
            heir.wake()

    def compact(self, known: Kind) -> int:
        """Write the committed state as a new generation, and later batches to its log.

        ``known`` is the last snapshot; if no batch came after it, it is written and nothing is merged again.
        """
        with self._compacting:
            self.check_open()
            with self._writing:
                state, self._since = self._durable, []
            is_last = (known.generation, known.seq) == (state.generation, state.seq)
            index = known if is_last else state.snapshot()
            path, generation = new_generation(self._directory)
            try:
                write_file(path, generation, index.settings, index.sections, seq=state.seq)
                base = open_generation(self._kind, path, generation)
                names = self._names_in(base)
                with self._writing, self._checking:
                    self._write()
                    self._move(state, base, generation, names)
            except BaseException:
                if self._durable.generation != generation:
                    log_path(self._directory, generation).unlink(missing_ok=True)
                    path.unlink(missing_ok=True)
                raise
            finally:
                self._since = None
            self._forget_vectors(state)
            return generation

    def _forget_vectors(self, state: State[Kind]) -> None:
        """Let the encoder's cache, if it has one, forget the passages and names that were deleted up to a state."""
        forget = getattr(self.encoder, "forget", None)
        rows = None if forget is None else state.rows()
        if forget is None or rows is None or not (rows.has("delete.passage") or rows.has("delete.entity")):
            return
        titles, texts, names = (rows.column(name) for name in ("passage.title", "passage.text", "entity.name"))
        gone = rows["delete.passage"].tolist()
        forget(
            [text_to_index(titles[slot], texts[slot]) for slot in gone]
            + [names[slot] for slot in rows["delete.entity"].tolist()]
        )

    def finish(self) -> None:
        """Refuse further changes, and wait for a running compaction."""
        with self._checking:
            self.closed = True
        with self._compacting, self._writing:
            pass

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _write(self) -> None:
        """Write all pending batches to the disk, as one group."""
        with self._checking:
            group, self._pending = self._pending, []
            if not group:
                return
        try:
            log = self._open_log()
            state, header, data, frames = self._durable, log.header, list[bytes](), list[Frame]()
            for seq, one in enumerate(group, state.seq + 1):
                data.append(frame_bytes(header, seq, state.seq, one.time, one.payload))
                frames.append(Frame(seq, one.time, memoryview(one.payload), state.seq, one.batch))
                one.seq = seq
            log.append(b"".join(data))
            self._durable = state.after(header, frames, log.end)
        except BaseException as error:
            self._fail(group, error)
            return
        if self._since is not None:
            self._since += group
        for one in group:
            one.wake()

    def _fail(self, group: list[_Commit], error: BaseException) -> None:
        """Fail the commits of a group that was not written, and those that were checked after it."""
        with self._checking:
            group, self._pending = group + self._pending, []
            for one in group:
                one.error = error
                one.wake()
            self._forget()
            self.close()

    def _open_log(self) -> LogWriter:
        """Open the log, cutting off what was never committed, or create it."""
        if self._log is None:
            state = self._durable
            path = log_path(self._directory, state.generation)
            header = state.header
            self._log = LogWriter(path, header, state.generation, state.base.seq, state.end)
            if header is None:
                self._durable = state.after(self._log.header, (), self._log.end)
        return self._log

    def _names_in(self, base: Kind) -> Names | None:
        """Return the names of a generation, read now so that no change waits for them; None if none has needed any."""
        known = self._names
        if known is None:
            return None
        names = Names(base, first_state(base).rows())
        names.read_keys_as(known)
        return names

    def _move(self, old: State[Kind], base: Kind, generation: int, names: Names | None) -> None:
        """Make a generation the current one, with the batches that it lacks in its log; ``names`` are those in it."""
        later = self._since or []
        state, log = first_state(base), log_path(self._directory, generation)
        moved = moved_records(old, base, [one.batch for one in later])
        if moved:
            payloads = [encode(one.arrays) for one in moved]
            times = [one.time for one in later]
            header, end = write_log(log, generation, base.seq, zip(times, payloads, strict=True))
            frames = [
                Frame(seq, time, memoryview(payload), seq - 1)
                for seq, (time, payload) in enumerate(zip(times, payloads, strict=True), base.seq + 1)
            ]
            state = state.after(header, frames, end)
            if names is not None:
                for batch in moved:
                    names.apply(batch)
        point_to(self._directory, generation)
        self.close()
        self._durable, self._names = state, names

    def _forget(self) -> None:
        """Discard the names; they are read again when needed."""
        self._names = None

    def _check_limits(self, batch: LogRecord, names: Names) -> None:
        added = batch.edge_types()
        types = added.union(names.edge_types)
        if len(types) > MAX_EDGE_TYPES:
            raise InputError(
                "limit",
                "edges",
                "the index would have {given} edge types; {allowed} are allowed",
                given=len(types),
                allowed=MAX_EDGE_TYPES,
            )
        if added and self._heaviest() > MOST_DEGREE:
            raise InputError(
                "limit",
                "edges",
                "the edges of a node weigh more than 2^120; to add {field}, build the index again with smaller weights",
            )

    def _heaviest(self) -> float:
        """Return the largest weight of a node's edges in the generation, computed once."""
        base = self._durable.base
        if self._most is None or self._most[0] is not base:
            self._most = base, 0.0 if base.graph is None else float(base.graph.degree.sum(axis=1).max(initial=0))
        return self._most[1]

    def _terms_of(self, texts: list[str]) -> list[list[str]]:
        from ...lexical import Tokenizer

        matrix = self._durable.base.lexical
        assert matrix is not None
        matrix.required_counts()
        return Tokenizer(matrix.stopwords, matrix.stemmer, matrix.rule).terms_of(texts)


class _Commit:
    """A batch that is waiting to be written, and the thread that waits for it.

    Each thread waits on a lock of its own, so that the next leader starts before those that are done go on.
    """

    def __init__(self, batch: LogRecord, payload: bytes, time: int) -> None:
        self.batch, self.payload, self.time = batch, payload, time
        self.seq = -1
        self.error: BaseException | None = None
        self.leads = self.is_left = self._is_awake = False
        self.woken = threading.Lock()
        self.woken.acquire()

    def wake(self) -> None:
        """Wake the thread, once."""
        if not self._is_awake:
            self._is_awake = True
            self.woken.release()


def checked_encoder(encoder: Any, base: Contents) -> Any:
    """Return an encoder, given as an object or by its name, with all members; refuse one that did not make the index's
    vectors.
    """
    if encoder is None or (isinstance(encoder, str) and encoder == "none"):
        return None
    from ...encoders import as_encoder, open_encoder

    whole, known = open_encoder(encoder) if isinstance(encoder, str) else as_encoder(encoder), base.encoder
    if known is not None and EncoderInfo.of(whole) != known:
        raise InputError(
            "conflict",
            "encoder",
            "{field} is {given}; the index's vectors were made by {allowed}",
            given=EncoderInfo.of(whole),
            allowed=known,
        )
    return whole


def lower_priority() -> None:
    """Lower the priority of this thread, on systems where threads have priorities (Linux)."""
    if hasattr(os, "sched_getscheduler"):
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + _LOW_PRIORITY, 19))
