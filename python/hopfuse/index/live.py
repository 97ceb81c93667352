"""An index that takes changes: snapshots of a directory, its one writer, and compaction."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from ..errors import InputError
from ..types.graph import MAX_EDGE_TYPES, MAX_NODES
from .batch import Batch, encode
from .change import Change
from .contents import Contents
from .encoder import EncoderInfo
from .files import write_file
from .filters import Where
from .generations import check_directory, hold_lock, log_path, new_generation, point_to
from .log import Frame, LogWriter, frame_bytes, write_log
from .names import Names
from .state import State, moved_batches, open_generation, read_state

#: A graph whose nodes weigh more takes no edges: with them float32 might not hold the weights.
MOST_DEGREE = 2.0**120
_POLL_SECONDS = 0.005
_LOW_PRIORITY = 10


class Searchable(Protocol):
    """A recipe, which :meth:`LiveIndex.follow` makes anew for each snapshot."""

    def search(self, *args: Any, **options: Any) -> Any:
        """Search the index that it was made of."""
        ...


Kind = TypeVar("Kind", bound=Contents)
S = TypeVar("S", bound=Searchable)


class LiveIndex(Generic[Kind]):
    """A directory's index as it changes: the last snapshot, and, for its one writer, the changes.

    :meth:`hopfuse.Index.open` makes it, with ``writable=True`` the one that writes, with ``live=True`` one that
    follows, of which there may be any number in any processes. A snapshot is an :class:`hopfuse.Index` like any other:
    immutable, with a :attr:`hopfuse.Index.seq`, and equal in every bit to one that is built of the rows that exist at
    that seq. Threads may share a live index.

    Examples
    --------
    >>> import tempfile, hopfuse as hf
    >>> folder = tempfile.mkdtemp()
    >>> saved = hf.Index.build(passages=[{"id": "a", "text": "Ada wrote."}]).save(folder)
    >>> reader = hf.Index.open(folder, live=True)
    >>> with hf.Index.open(folder, writable=True) as live, live.change() as change:
    ...     change.replace_passages([{"id": "a", "text": "Ada wrote notes."}])
    >>> reader.index.texts[0], reader.refresh().texts[0], reader.seq
    ('Ada wrote.', 'Ada wrote notes.', 1)
    """

    def __init__(
        self, kind: type[Kind], directory: str | os.PathLike[str], *, writable: bool = False, encoder: Any = None
    ) -> None:
        self.directory = Path(directory)
        self._held = ExitStack()
        self._writer: _Writer[Kind] | None = None
        self._reading = threading.Lock()
        try:
            if writable:
                check_directory(self.directory)
                self._held.enter_context(hold_lock(self.directory))
            self._state = read_state(kind, self.directory)
            if writable:
                whole = _whole_encoder(encoder, self._state.base)
                self._writer = _Writer(kind, self.directory, self._state, whole)
                self._held.callback(self._writer.close)
        except BaseException:
            self._held.close()
            raise
        self._kind, self._index = kind, self._state.snapshot()

    @property
    def index(self) -> Kind:
        """The last snapshot; :meth:`refresh` puts another in its place."""
        return self._index

    @property
    def seq(self) -> int:
        """The seq of :attr:`index`."""
        return self._index.seq

    def refresh(self) -> Kind:
        """Read what was committed since, merge it, swap the snapshot, and return it; searches go on meanwhile."""
        with self._reading:
            state = read_state(self._kind, self.directory, self._state) if self._writer is None else self._writer.state
            if (state.generation, state.seq) != (self._index.generation, self._index.seq):
                index = state.snapshot()
                index.load()
                self._state, self._index = state, index
            return self._index

    def wait_for(self, seq: int, timeout: float = 10.0) -> Kind:
        """Return a snapshot of at least a seq, as a commit returned it, once it can be read.

        Raises
        ------
        TimeoutError
            It cannot be read within so many seconds.
        """
        until = time.monotonic() + timeout
        while self.seq < seq and self.refresh().seq < seq:
            if time.monotonic() >= until:
                raise TimeoutError(f"seq {seq} is not there after {timeout} s; the last one is {self.seq}")
            time.sleep(_POLL_SECONDS)
        return self._index

    def history(self) -> list[dict[str, Any]]:
        """Return the batches since the last generation, each with its ``seq``, ``time`` and ``counts``.

        The time is in microseconds since 1970 in UTC; counts are rows that were added, and, below 0, deleted, by kind.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> saved = hf.Index.build(passages=[{"id": "a", "text": "The sea."}]).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     with live.change() as change:
        ...         change.replace_passages([{"id": "a", "text": "A river."}])
        ...     live.history()[0]["counts"]
        {'deleted passages': -1, 'passages': 1}
        """
        state = read_state(self._kind, self.directory)
        pairs = zip(state.frames, state.batches, strict=True)
        return [{"seq": frame.seq, "time": frame.time, "counts": batch.counts()} for frame, batch in pairs]

    def follow(self, make: Callable[[Kind], S]) -> Follower[Kind, S]:
        """Return a searcher of the last snapshot, whichever that is: ``live.follow(lambda index: PhaseGraph(index))``.

        Parameters
        ----------
        make : callable
            Makes a recipe of an index; called once for each snapshot that is searched.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> texts = hf.Index.build(passages=[{"id": "a", "text": "The sea."}]).texts_to_index()
        >>> bm25 = hf.lexical.BM25.build(texts)
        >>> saved = hf.Index.build(passages=[{"id": "a", "text": "The sea."}]).with_lexical(bm25.matrix).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     recipe = live.follow(lambda i: hf.recipes.HybridRRF(i, lexical=hf.lexical.BM25(i.lexical)))
        ...     with live.change() as change:
        ...         change.add_passages([{"id": "b", "text": "A river, the sea."}])
        ...     found = recipe.search(["river"], at_least=change.seq)
        >>> [hit.id for hit in found[0]], found.seq
        (['b'], 1)
        """
        return Follower(self, make)

    # ---- Writing ----

    def change(self, *, only: Where | None = None) -> Change:
        """Return a new batch of changes, which is committed where its ``with`` block ends, or by ``commit()``.

        Parameters
        ----------
        only : Where, optional
            The passages that the change may add, delete and name; others are to it as if they were not there. It may
            change nothing that such passages share with others: it deletes no entity, edge or fact, gives no alias,
            adds no column of metadata, no type of edges, and no edge that no passage states.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> rows = [{"id": "a", "text": "The sea.", "metadata": {"tenant": "x"}}]
        >>> saved = hf.Index.build(passages=rows).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live, live.change(only=hf.where(tenant="y")) as change:
        ...     change.add_passages([{"id": "b", "text": "A river.", "metadata": {"tenant": "y"}}])
        >>> change.seq
        1
        """
        writer = self._open_writer()
        return Change(writer.state.base, writer.encoder, writer.commit, only)

    def compact(self) -> int:
        """Write the changes into a new generation, and return its number; searches and commits go on meanwhile.

        Answers stay the same, bit for bit, and so does the seq. Every row of the index is written, by a thread of low
        priority where the system knows such (Linux).
        """
        return self.compact_in_background().result()

    def compact_in_background(self) -> Future[int]:
        """Start :meth:`compact`, and return its future."""
        future: Future[int] = Future()
        writer = self._open_writer()

        def work() -> None:
            try:
                _lower_priority()
                future.set_result(writer.compact())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="hopfuse-compact").start()
        return future

    def close(self) -> None:
        """Release the writer's lock, once a compaction has ended; the snapshot stays usable."""
        if self._writer is not None:
            self._writer.finish()
        self._held.close()

    def __enter__(self) -> LiveIndex[Kind]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LiveIndex({str(self.directory)!r}, seq={self.seq}, writable={self._writer is not None})"

    def _open_writer(self) -> _Writer[Kind]:
        if self._writer is None:
            raise InputError("the index is open for reading; open it with hf.Index.open(directory, writable=True)")
        if self._writer.closed:
            raise InputError("the index is closed; open it again to change it")
        return self._writer


class Follower(Generic[Kind, S]):
    """A recipe over the last snapshot of a live index, made anew when that changes; :meth:`LiveIndex.follow` makes it.

    Examples
    --------
    >>> import tempfile, hopfuse as hf
    >>> folder = tempfile.mkdtemp()
    >>> saved = hf.Index.build(passages=[{"id": "a", "text": "The sea."}], vectors=[[1.0, 0.0]]).save(folder)
    >>> with hf.Index.open(folder, writable=True) as live:
    ...     recipe = live.follow(hf.recipes.HybridRRF)
    ...     with live.change() as change:
    ...         change.add_passages([{"id": "b", "text": "A river."}], vectors=[[0.0, 1.0]])
    ...     found = recipe.search(vectors=[[0.0, 1.0]], k=1, at_least=change.seq)
    >>> found[0][0].id, found.seq
    ('b', 1)
    """

    def __init__(self, live: LiveIndex[Kind], make: Callable[[Kind], S]) -> None:
        self._live, self._make = live, make
        self._lock = threading.Lock()
        self._made: tuple[Kind, S] | None = None

    @property
    def recipe(self) -> S:
        """The recipe over the last snapshot."""
        return self._of(self._live.index)

    def search(self, *args: Any, at_least: int | None = None, timeout: float = 10.0, **options: Any) -> Any:
        """Search the last snapshot, or wait for one of at least a seq; the rest is for the recipe's own ``search``.

        Raises
        ------
        TimeoutError
            The seq ``at_least`` cannot be read within ``timeout`` seconds.
        """
        index = self._live.index if at_least is None else self._live.wait_for(at_least, timeout)
        return self._of(index).search(*args, **options)

    def _of(self, index: Kind) -> S:
        with self._lock:
            if self._made is None or self._made[0] is not index:
                self._made = index, self._make(index)
            return self._made[1]


class _Writer(Generic[Kind]):
    """The one writer of a directory: checks changes in turn, and puts those of several threads on the disk together."""

    def __init__(self, kind: type[Kind], directory: Path, state: State[Kind], encoder: Any) -> None:
        self.encoder, self.closed = encoder, False
        self._kind, self._directory, self._durable = kind, directory, state
        self._checking, self._writing, self._compacting = threading.RLock(), threading.Lock(), threading.Lock()
        self._pending: list[_Commit] = []
        self._log: LogWriter | None = None
        self._names: Names | None = None
        if state.header is not None:
            self._open_log()

    @property
    def state(self) -> State[Kind]:
        """The state on the disk."""
        return self._durable

    def commit(self, change: Change) -> int:
        """Check a change, and return its seq once it is on the disk."""
        with self._checking:
            if self.closed:
                raise InputError("the index is closed; open it again to change it")
            if self._names is None:
                self._names = Names(self._durable.base, self._durable.batches)
            arrays = change.arrays(self._names, self._terms_of)
            if not arrays:
                return self._durable.seq + len(self._pending)
            batch = Batch(arrays, self._names.slots)
            self._check_limits(batch, self._names)
            if sum(batch.after) > MAX_NODES:
                raise InputError(
                    f"{sum(batch.after)} slots of passages and entities; {MAX_NODES} are allowed: compact the index"
                )
            self._names.apply(batch)
            mine = _Commit(batch, encode(arrays), time.time_ns() // 1000)
            self._pending.append(mine)
        with self._writing:
            if not mine.done:
                self._write()
        if mine.error is not None:
            raise mine.error
        return mine.seq

    def compact(self) -> int:
        """Write a generation of what is on the disk now, then move the later batches behind it."""
        with self._compacting:
            if self.closed:
                raise InputError("the index is closed; open it again to compact it")
            state = self._durable
            index = state.snapshot()
            path, generation = new_generation(self._directory)
            try:
                write_file(path, generation, index.settings, index.arrays(), seq=state.seq)
                base = open_generation(self._kind, path, generation)
                with self._writing, self._checking:
                    self._write()
                    self._move(state, base, generation)
            except BaseException:
                if self._durable.generation != generation:
                    log_path(self._directory, generation).unlink(missing_ok=True)
                    path.unlink(missing_ok=True)
                raise
            return generation

    def finish(self) -> None:
        """Take no more changes, and wait for a compaction that goes on."""
        with self._checking:
            self.closed = True
        with self._compacting, self._writing:
            pass

    def close(self) -> None:
        """Let go of the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _write(self) -> None:
        """Put all batches that wait on the disk, as one group."""
        with self._checking:
            group, self._pending = self._pending, []
            if not group:
                return
        try:
            log = self._open_log()
            state, header, data, frames = self._durable, log.header, list[bytes](), list[Frame]()
            for seq, one in enumerate(group, state.seq + 1):
                data.append(frame_bytes(header, seq, state.seq, one.time, one.payload))
                frames.append(Frame(seq, one.time, memoryview(one.payload), state.seq))
                one.seq = seq
            log.append(b"".join(data))
        except BaseException as error:
            self._fail(group, error)
            return
        batches = (*state.batches, *(one.batch for one in group))
        self._durable = State(state.base, header, (*state.frames, *frames), batches, log.end)
        for one in group:
            one.done = True

    def _fail(self, group: list[_Commit], error: BaseException) -> None:
        """Nothing of a group was committed: nor can be what was checked against it."""
        with self._checking:
            group, self._pending = group + self._pending, []
            for one in group:
                one.done, one.error = True, error
            self._forget()
            self.close()

    def _open_log(self) -> LogWriter:
        """Open the log, where what was never committed is cut, or make it."""
        if self._log is None:
            state = self._durable
            path = log_path(self._directory, state.generation)
            header = state.header
            self._log = LogWriter(path, header, state.generation, state.base.seq, state.end)
            if header is None:
                self._durable = State(state.base, self._log.header, (), (), self._log.end)
        return self._log

    def _move(self, old: State[Kind], base: Kind, generation: int) -> None:
        """Make a generation the current one, with the batches that it lacks behind it."""
        later = self._durable.batches[len(old.batches) :]
        frames = self._durable.frames[len(old.frames) :]
        moved = moved_batches(old, base, later)
        header, end = None, 0
        if moved:
            batches = [(frame.time, encode(one.arrays)) for frame, one in zip(frames, moved, strict=True)]
            header, end = write_log(log_path(self._directory, generation), generation, base.seq, batches)
        point_to(self._directory, generation)
        self.close()
        self._durable = State(base, header, frames, tuple(moved), end)
        self._forget()

    def _forget(self) -> None:
        """Read names anew when they are next needed."""
        self._names = None

    def _check_limits(self, batch: Batch, names: Names) -> None:
        added, graph = batch.edge_types(), self._durable.base.graph
        types = added.union(names.edge_types)
        if len(types) > MAX_EDGE_TYPES:
            raise InputError(f"{len(types)} edge types; {MAX_EDGE_TYPES} are allowed")
        if graph is not None and added and float(graph.degree.sum(axis=1).max(initial=0)) > MOST_DEGREE:
            raise InputError(
                "a node's edges weigh more than 2^120; build the index anew with scaled weights to add edges"
            )

    def _terms_of(self, texts: list[str]) -> list[list[str]]:
        from ..lexical import Tokenizer

        matrix = self._durable.base.lexical
        assert matrix is not None
        if matrix.counts is None:
            raise InputError("the index's lexical part keeps no counts; build it anew with BM25.build to add passages")
        return Tokenizer(matrix.stopwords, matrix.stemmer).terms_of(texts)


@dataclass
class _Commit:
    """A batch that waits for the disk."""

    batch: Batch
    payload: bytes
    time: int
    seq: int = -1
    done: bool = False
    error: BaseException | None = None


def _whole_encoder(encoder: Any, base: Contents) -> Any:
    if encoder is None:
        return None
    from ..encoders import as_encoder

    whole, known = as_encoder(encoder), base.encoder
    if known is not None and EncoderInfo.of(whole) != known:
        raise InputError(f"the encoder is {EncoderInfo.of(whole)}; the index's vectors were made by {known}")
    return whole


def _lower_priority() -> None:
    """Let this thread's work wait for others', where a thread has a priority of its own (Linux)."""
    if hasattr(os, "sched_getscheduler"):
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + _LOW_PRIORITY, 19))
