"""An index that takes changes: snapshots, and recipes that follow them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, TypeVar
from weakref import WeakValueDictionary

from .._threads import own_thread
from .._validation import check_choice, check_whole
from ..errors import InputError
from .change import Change
from .contents import Contents
from .file.generations import check_directory, hold_lock
from .filters import Where
from .log.state import follow_compaction, read_state
from .log.writer import IndexWriter, checked_encoder, lower_priority
from .schema import KINDS

_POLL_SECONDS = 0.005

#: What a search must contain beside the commits of its own process: a seq, or all commits until now.
AtLeast = int | Literal["latest"] | None


class _Commits:
    """The last seq that this process committed to a directory, for all its live indexes of the directory."""

    def __init__(self) -> None:
        self.seq = 0

    @classmethod
    def of(cls, directory: Path) -> _Commits:
        """Return the one object of a directory."""
        place = os.path.realpath(directory)
        with _COMMITS_LOCK:
            return _COMMITS.setdefault(place, cls())

    def opened(self, seq: int) -> None:
        """Note the seq at which a writer opens, which is less than the one before if the directory was made anew."""
        with _COMMITS_LOCK:
            self.seq = seq

    def reached(self, seq: int) -> None:
        """Note a commit."""
        with _COMMITS_LOCK:
            self.seq = max(self.seq, seq)


_COMMITS: WeakValueDictionary[str, _Commits] = WeakValueDictionary()
_COMMITS_LOCK = threading.Lock()


class Searchable(Protocol):
    """A recipe, which :meth:`LiveIndex.follow` constructs for each snapshot."""

    def search(self, *args: Any, **options: Any) -> Any:
        """Search the index that it was constructed with."""
        ...


Kind = TypeVar("Kind", bound=Contents)
S = TypeVar("S", bound=Searchable)


class LiveIndex(Generic[Kind]):
    """A directory's index as it changes: the last snapshot and, for a writer, methods that change it.

    :meth:`hopfuse.Index.open` returns the only writer with ``writable=True``, and a follower with ``live=True``; any
    number of processes can follow. A snapshot is an immutable :class:`hopfuse.Index` with a :attr:`hopfuse.Index.seq`,
    and equals, bit for bit, an index built from the rows that exist at that seq. Thread-safe.

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
        self._writer: IndexWriter[Kind] | None = None
        self._reading = threading.Lock()
        self._commits = _Commits.of(self.directory)
        try:
            if writable:
                check_directory(self.directory)
                self._held.enter_context(hold_lock(self.directory))
            self._state = read_state(kind, self.directory)
            if writable:
                whole = checked_encoder(encoder, self._state.base)
                self._writer = IndexWriter(kind, self.directory, self._state, whole)
                self._commits.opened(self._state.seq)
                self._held.callback(self._writer.close)
        except BaseException:
            self._held.close()
            raise
        self._kind, self._index = kind, self._state.snapshot()

    @property
    def index(self) -> Kind:
        """The last snapshot, which :meth:`refresh` replaces."""
        return self._index

    @property
    def seq(self) -> int:
        """The seq of :attr:`index`."""
        return self._index.seq

    @property
    def committed(self) -> int:
        """The last seq that this process committed to the directory, by any live index of it; 0 if none."""
        return self._commits.seq

    def snapshot(self, at_least: AtLeast = None, timeout: float = 10.0) -> Kind:
        """Return the last snapshot, refreshed if this process has committed later changes to the directory.

        Parameters
        ----------
        at_least : int or "latest", optional
            A seq that the snapshot must contain, as returned by a commit of any process; or ``"latest"``: all that any
            process has committed until now.
        timeout : float
            Seconds to wait for a seq.

        Raises
        ------
        TimeoutError
            The seq cannot be read within ``timeout`` seconds.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> saved = hf.Index.build(passages=[{"id": "a", "text": "The sea."}]).save(folder)
        >>> reader = hf.Index.open(folder, live=True)
        >>> with hf.Index.open(folder, writable=True) as live, live.change() as change:
        ...     change.add_passages([{"id": "b", "text": "A river."}])
        >>> reader.index.num_passages, reader.snapshot().num_passages
        (1, 2)
        """
        if isinstance(at_least, str):
            check_choice(at_least, "at_least", ("latest",))
            return self.refresh()
        if at_least is not None:
            self.wait_for(check_whole(at_least, "at_least", least=0), timeout)
        return self.refresh() if self.seq < self.committed else self._index

    def refresh(self) -> Kind:
        """Read and merge later commits, and return the new snapshot. Searches are not blocked."""
        with self._reading:
            # A closed writer follows what others commit, as a reader does.
            writer = None if self._writer is None or self._writer.closed else self._writer
            state = read_state(self._kind, self.directory, self._state) if writer is None else writer.state
            if (state.generation, state.seq) != (self._index.generation, self._index.seq):
                if state.base is not self._state.base:
                    follow_compaction(self._state, state)
                index = state.snapshot(self._index)
                index.load()
                self._state, self._index = state, index
            return self._index

    def wait_for(self, seq: int, timeout: float = 10.0) -> Kind:
        """Wait until a seq, as returned by a commit, can be read, and return a snapshot that contains it.

        Raises
        ------
        TimeoutError
            The seq cannot be read within ``timeout`` seconds.
        """
        until = time.monotonic() + timeout
        while self.seq < seq and self.refresh().seq < seq:
            if time.monotonic() >= until:
                raise TimeoutError(f"seq {seq} cannot be read after {timeout} s; the last one is {self.seq}")
            time.sleep(_POLL_SECONDS)
        return self._index

    def history(self) -> list[dict[str, Any]]:
        """Return the batches since the last generation, each with its ``seq``, ``time`` and ``counts``.

        Times are in microseconds since 1970 in UTC. Counts are numbers of added or, if negative, deleted rows by kind.

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
        rows, found = state.rows(), []
        counts = {what: (sign * rows.counts(name)).tolist() for what, (sign, name) in KINDS.items()}
        for at, time_ in enumerate(state.delta.times(state.count)):
            own = {what: column[at] for what, column in counts.items() if column[at]}
            found.append({"seq": state.base.seq + at + 1, "time": time_, "counts": own})
        return found

    def follow(self, make: Callable[[Kind], S]) -> Follower[Kind, S]:
        """Return a searcher that always uses the last snapshot: ``live.follow(lambda index: PhaseGraph(index))``.

        Parameters
        ----------
        make : callable
            Constructs a recipe for an index; called once for each snapshot that is searched.

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
        """Return a new batch of changes, committed at the end of its ``with`` block or by ``commit()``.

        Parameters
        ----------
        only : Where, optional
            The passages that the change may add, delete and refer to; for it, other passages do not exist, nor entities
            that only others state. It cannot change what passages share: it cannot delete entities, edges or facts, or
            add aliases, metadata columns, edge types, or edges that no passage states.

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
        return Change(writer.state.base, writer.encoder, self._commit, writer.preview, only)

    def compact(self) -> int:
        """Write the index with its changes as a new generation, and return its number.

        Searches and commits are not blocked. Answers and the seq stay the same. All rows are written, by a thread with
        low priority where the system supports it (Linux). Changes after the last :meth:`refresh` are merged first.
        """
        return self.compact_in_background().result()

    def compact_in_background(self) -> Future[int]:
        """Start :meth:`compact` in a thread, and return its future."""
        future: Future[int] = Future()
        writer = self._open_writer()

        def work() -> None:
            try:
                lower_priority()
                future.set_result(writer.compact(self._index))
            except BaseException as error:
                future.set_exception(error)

        own_thread(work, name="hopfuse-compact", daemon=False).start()
        return future

    def close(self) -> None:
        """Wait for a running compaction and release the writer's lock. The snapshot stays usable."""
        if self._writer is not None:
            self._writer.finish()
        self._held.close()

    def __enter__(self) -> LiveIndex[Kind]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LiveIndex({str(self.directory)!r}, seq={self.seq}, writable={self._writer is not None})"

    def _commit(self, change: Change) -> int:
        seq = self._open_writer().commit(change)
        self._commits.reached(seq)
        return seq

    def _open_writer(self) -> IndexWriter[Kind]:
        if self._writer is None:
            raise InputError(
                "denied", None, "the index is open for reading; open it with hf.Index.open(directory, writable=True)"
            )
        self._writer.check_open()
        return self._writer


class Follower(Generic[Kind, S]):
    """A recipe over the last snapshot of a live index, from :meth:`LiveIndex.follow`.

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
        """The recipe over the last snapshot, which has all commits of this process."""
        return self._of(self._live.snapshot())

    def search(self, *args: Any, at_least: AtLeast = None, timeout: float = 10.0, **options: Any) -> Any:
        """Search a snapshot as :meth:`LiveIndex.snapshot` returns it; pass other arguments to the recipe's search.

        Raises
        ------
        TimeoutError
            The seq ``at_least`` cannot be read within ``timeout`` seconds.
        """
        return self._of(self._live.snapshot(at_least, timeout)).search(*args, **options)

    def _of(self, index: Kind) -> S:
        with self._lock:
            if self._made is None or self._made[0] is not index:
                self._made = index, self._make(index)
            return self._made[1]
