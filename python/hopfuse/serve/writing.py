"""Changes of an index over HTTP: ``POST /v1/passages``, ``DELETE /v1/passages/{id}``, ``POST /v1/passages/delete``.

The process that holds the index's lock accepts them. Each change runs on its own thread, so that waiting changes share
one flush of the disk, and neither the event loop nor the kernel thread waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..encoders.protocol import first_unencodable
from ..errors import HopfuseError, InputError
from ..extract import Memory, WordReader, build_memory
from ..index import Index, LiveIndex, Where, where
from ..index.change import Change
from ..index.contents import text_to_index
from ..index.file.generations import generation_name, log_path
from ..text import canonical_key
from .bounds import check_conditions, check_most
from .budget import Held
from .config import ServeConfig
from .errors import RefusalError, in_request, in_row, no_passage
from .keys import Principal
from .metrics import Metrics
from .schema import DeletionRequest, DeletionResponse, EdgeIn, EntityIn, PassageIn, PassagesRequest
from .snapshots import IndexSnapshot, own_id
from .threads import DaemonThreads
from .vectors import vector_of, wrong_dim

T = TypeVar("T")
log = logging.getLogger("hopfuse.serve")
#: Threads that commit, and so the most changes that share a flush of the disk.
THREADS = 16
#: The type of edges between a passage and its entities, as in :mod:`hopfuse.extract`.
CONTEXT = "context"
#: Size of a log, in bytes, below which it is not compacted.
LEAST_LOG = 2**20


class Writer:
    """Commits the changes of one index, which this process has open for writing.

    Parameters
    ----------
    live : LiveIndex
    name : str
        Name of the index in requests.
    changed : callable
        Called after a commit, on any thread.
    compact_at : float
        Share of the index's size at which its log is compacted.
    metrics : Metrics

    Raises
    ------
    MissingExtraError
        The index has words, and a package that reads them is not installed.
    """

    def __init__(
        self, live: LiveIndex[Index], name: str, *, changed: Callable[[], None], compact_at: float, metrics: Metrics
    ) -> None:
        self._live, self.name, self._changed = live, name, changed
        self._compact_at, self._metrics = compact_at, metrics
        self._compacting = False
        words = live.index.words
        self._words = None if words is None else WordReader.like(words)
        self._reading = threading.Lock()  # a tagger's model is not known to be thread-safe

    def add(self, asked: PassagesRequest, snapshot: IndexSnapshot, principal: Principal) -> int:
        """Commit the additions of a request, and return the seq; called on a separate thread."""
        rows = [_row(one, principal.sets) for one in asked.passages]
        texts = [text_to_index(one.title, one.text) for one in asked.passages]
        vectors = _vectors(asked.passages, texts, "passages", snapshot, snapshot.index.dim)
        stated = [one if isinstance(one, EntityIn) else EntityIn(one) for one in asked.entities]
        entities = {one.name: one for one in stated}
        found = [name for name in _names_in(asked.passages) if name not in entities]
        corpus = snapshot.index.entity_corpus
        dim = None if corpus is None else corpus.dim
        vectors_of = partial(_vectors, field="entities", snapshot=snapshot, dim=dim)
        given = vectors_of(list(entities.values()), list(entities))
        made = vectors_of([EntityIn(name) for name in found], found)
        read = self._read(rows)

        def fill(change: Change) -> None:
            with _vectors_of("passages"):
                change.add_passages(rows, vectors=vectors, replace=asked.replace)
            change.add_entities(found, vectors=made, missing=True, stated=False)
            with _vectors_of("entities"):
                change.add_entities(list(entities), vectors=given, missing=True)
            if read is not None:
                change.add_memory(read)
            if asked.merge:
                change.merge_entities(asked.merge)
            if asked.aliases:
                change.add_aliases(asked.aliases)
            mentions = _mentions(asked.passages, snapshot.index.name_rule)
            if mentions:
                change.add_edges(mentions, stated=False)
            if asked.edges:
                change.add_edges(map(_edge, asked.edges))
            facts = [(*fact, one.id) for one in asked.passages for fact in one.facts]
            if facts:
                change.add_facts(facts, stated=False)
            if asked.facts:
                change.add_facts(asked.facts)

        return _seq_of(self._commit(fill, principal))

    def _read(self, rows: list[dict[str, Any]]) -> Memory | None:
        """Return the words of passages, read like those of the index; None if it has no words."""
        if self._words is None or not rows:
            return None
        try:
            with self._reading:
                return build_memory(self._words.read(rows))
        except InputError as error:
            raise in_row(error) from None

    def delete(self, id: str, snapshot: IndexSnapshot, principal: Principal) -> int:
        """Commit the deletion of a passage, and return the seq; called on a separate thread."""
        own = own_id(snapshot.index, id)
        try:
            if own is not None:
                return _seq_of(self._commit(lambda change: change.delete_passages([own]), principal))
        except InputError:
            pass
        raise no_passage(id)

    def delete_some(self, asked: DeletionRequest, principal: Principal) -> DeletionResponse:
        """Commit the deletion of passages, or count what it would delete; called on a separate thread."""
        conditions = None if asked.where is None else _conditions(asked.where)

        def fill(change: Change) -> None:
            change.delete_passages(asked.ids, where=conditions, document=asked.document)

        told = partial(_in_deletion, asked)
        if not asked.dry_run:
            change = self._commit(fill, principal, told)
            assert change.deleted is not None
            return DeletionResponse(change.seq, *change.deleted)
        try:
            fill(change := self._live.change(only=principal.where))
            return DeletionResponse(None, *change.preview())
        except InputError as error:
            raise told(error) from None

    def _commit(
        self, fill: Callable[[Change], None], principal: Principal, told: Callable[[InputError], HopfuseError] = in_row
    ) -> Change:
        """Commit a change, and return it; ``told`` returns its refusal as that of the request."""
        began = time.perf_counter()
        try:
            with self._live.change(only=principal.where) as change:
                fill(change)
        except InputError as error:
            raise told(error) from None
        except OSError as error:
            log.exception("a change of index %s was not written", self.name)
            raise RefusalError(
                "disk",
                None,
                "the change was not written ({reason}), and nothing is changed; the server's log says more",
                reason=error.strerror,
            ) from None
        self._metrics.changes.labels(self.name).inc()
        self._metrics.change_seconds.observe(time.perf_counter() - began)
        self._changed()
        return change

    def compact_if_due(self) -> None:
        """Start a compaction if the log has reached its share of the index, and none is running."""
        directory, generation = self._live.directory, self._live.index.generation
        assert generation is not None
        try:
            grown = log_path(directory, generation).stat().st_size
            whole = (directory / generation_name(generation)).stat().st_size
        except FileNotFoundError:
            return  # no change yet, or a compaction has just ended
        if self._compacting or grown < max(LEAST_LOG, self._compact_at * whole):
            return
        self._compacting = True
        self._live.compact_in_background().add_done_callback(self._compacted)

    def _compacted(self, done: Any) -> None:
        self._compacting = False
        error = done.exception()
        if error is None:
            log.info("index %s is compacted into generation %d", self.name, done.result())
            self._metrics.compactions.labels(self.name).inc()
            self._changed()
        else:
            log.error("index %s was not compacted: %s", self.name, error, exc_info=error)


class ChangesInProgress:
    """The changes in progress, limited in number; their bytes are counted with those of other requests.

    Parameters
    ----------
    config : ServeConfig
    metrics : Metrics
    inside : callable, optional
        Returns a context manager within which threads make changes.
    """

    def __init__(
        self,
        config: ServeConfig,
        metrics: Metrics,
        inside: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._config, self._limits, self._metrics = config, config.limits, metrics
        self._writers: dict[str, Writer] = {}
        self._threads = DaemonThreads(THREADS, "hopfuse-write", inside)
        self._waiting: Counter[str] = Counter()  # by key
        metrics.watch_changes(self._waiting.total)

    def accept_writes(self, name: str, live: LiveIndex[Index], changed: Callable[[], None]) -> None:
        """Accept changes of an index from now on."""
        compact_at = self._config.compact_at
        self._writers[name] = Writer(live, name, changed=changed, compact_at=compact_at, metrics=self._metrics)
        self.compact_if_due(name)

    def accepts_writes(self, name: str) -> bool:
        """Return whether changes of an index are accepted."""
        return name in self._writers

    def compact_if_due(self, name: str) -> None:
        """Compact an index that is written here if its log is long enough, on another thread."""
        if name in self._writers:
            self._threads.submit(self._writers[name].compact_if_due)

    async def add(
        self, asked: PassagesRequest, snapshot: IndexSnapshot, principal: Principal, *, held: Held, deadline: float
    ) -> int:
        """Commit the additions of a request; see :meth:`Service.add`."""
        writer = self._writer(snapshot.name)
        check_most(len(asked.passages), "passages", self._limits, "passages")
        _check_prefix(asked.passages, principal)
        if not (asked.passages or asked.entities or asked.aliases or asked.merge or asked.edges or asked.facts):
            raise InputError(
                "missing", "passages", "{field} is missing, and nothing else is given; give something to add"
            )
        return await self._run(lambda: writer.add(asked, snapshot, principal), principal, held, deadline)

    async def delete(self, id: str, snapshot: IndexSnapshot, principal: Principal, *, deadline: float) -> int:
        """Delete a passage; see :meth:`Service.delete`."""
        writer = self._writer(snapshot.name)
        return await self._run(lambda: writer.delete(id, snapshot, principal), principal, None, deadline)

    async def delete_some(
        self,
        asked: DeletionRequest,
        snapshot: IndexSnapshot,
        principal: Principal,
        *,
        held: Held,
        deadline: float,
    ) -> DeletionResponse:
        """Delete passages, or count; see :meth:`Service.delete_some`."""
        writer = self._writer(snapshot.name)
        check_most(len(asked.ids or ()), "ids", self._limits, "passages")
        check_conditions(asked.where or {}, "where", self._limits)
        return await self._run(lambda: writer.delete_some(asked, principal), principal, held, deadline)

    @property
    def threads(self) -> list[threading.Thread]:
        """The threads that commit."""
        return list(self._threads.threads)

    def close(self) -> None:
        """Wait for changes in progress."""
        self._threads.shutdown(wait=True)

    def _writer(self, name: str) -> Writer:
        if name not in self._writers:
            raise RefusalError(
                "read_only",
                "index",
                "this process only reads {field} {name}; send the change to a server that was started with --writable, "
                "or with writable = true for this index",
                name=name,
            )
        return self._writers[name]

    async def _run(self, make: Callable[[], T], principal: Principal, held: Held | None, deadline: float) -> T:
        """Run a change on a thread, and return its result; it holds the bytes of its request until it is done."""
        self._check_room(principal.name)
        jobs = [make]  # emptied when it is done or cancelled: the pool keeps cancelled jobs in its queue
        running = self._threads.submit(lambda: jobs.pop()())
        self._waiting[principal.name] += 1
        shared = None if held is None else held.share()
        done = asyncio.wrap_future(running)
        done.add_done_callback(lambda _: self._forget(principal.name, shared, jobs))
        try:
            return await asyncio.wait_for(asyncio.shield(done), deadline - time.monotonic())
        except TimeoutError:
            never = running.cancel()
            what = "and nothing is changed" if never else "and it may still be committed: send it again with replace"
            raise RefusalError(
                "timeout", "timeout_ms", "{field} passed before the change was on the disk, {result}", result=what
            ) from None
        except asyncio.CancelledError:  # the client has left
            running.cancel()
            raise
        finally:
            done.add_done_callback(lambda one: one.cancelled() or one.exception())  # mark it as retrieved

    def _check_room(self, key: str) -> None:
        """Refuse a change if too many wait; with several keys, each may have half of them."""
        most = self._limits.writes if len(self._config.keys) < 2 else max(1, self._limits.writes // 2)
        full = self._waiting.total() >= self._limits.writes or self._waiting[key] >= most
        if full:
            raise RefusalError(
                "overloaded",
                None,
                "{waiting} changes are waiting; send the request again after Retry-After",
                waiting=self._waiting.total(),
            ).after(1)

    def _forget(self, key: str, held: Held | None, jobs: list[Callable[[], Any]]) -> None:
        jobs.clear()
        self._waiting[key] -= 1
        if held is not None:
            held.release()


def _seq_of(change: Change) -> int:
    assert change.seq is not None
    return change.seq


def _conditions(given: Mapping[str, Any]) -> Where:
    try:
        return where(**given)
    except InputError as error:
        raise in_request(error, "where") from None


def _in_deletion(asked: DeletionRequest, error: InputError) -> HopfuseError:
    """Return the refusal of a deletion with the field of the request."""
    if asked.where is not None and error.field != "ids":
        return in_request(error, "where")
    return error.at(field="ids")


def _check_prefix(passages: list[PassageIn], principal: Principal) -> None:
    """Refuse ids without the key's prefix, whether or not passages with them exist."""
    for at, one in enumerate(passages):
        if principal.prefix and not str(one.id).startswith(principal.prefix):
            raise InputError(
                "forbidden",
                f"passages[{at}].id",
                "{field} is {given!r}; ids that the key {key} adds must begin with {allowed!r}",
                given=one.id,
                key=principal.name,
                allowed=principal.prefix,
            )


def _row(one: PassageIn, sets: Mapping[str, Any]) -> dict[str, Any]:
    """Return a passage as a row of a change; metadata that it lacks comes from the key's filter."""
    labels = {"document": one.document, "language": one.language}
    row = {"id": one.id, "text": one.text, "title": one.title, "metadata": {**sets, **one.metadata}}
    return row | {label: value for label, value in labels.items() if value is not None}


def _names_in(passages: list[PassageIn]) -> list[str]:
    """Return the names of entities that passages have, each once."""
    named = [name for one in passages for name in one.entities]
    return list(dict.fromkeys(named + [name for one in passages for fact in one.facts for name in (fact[0], fact[2])]))


def _mentions(passages: list[PassageIn], rule: int) -> list[dict[str, Any]]:
    """Return the edges between passages and their entities, one for the spellings of a name."""
    return [
        {"src": ("passage", one.id), "dst": ("entity", name), "type": CONTEXT}
        for one in passages
        for name in {canonical_key(name, rule=rule): name for name in one.entities}.values()
    ]


def _edge(one: EdgeIn) -> dict[str, Any]:
    edge = {"src": one.src, "dst": one.dst, "weight": one.weight}
    if one.type is not None:
        edge["type"] = one.type
    if one.stated_by is not None:
        edge["stated_by"] = one.stated_by
    return edge


@contextmanager
def _vectors_of(field: str) -> Iterator[None]:
    """Name a vector that cannot be scored by its row of the request, such as ``passages[2].vector``."""
    try:
        yield
    except InputError as error:
        row = re.fullmatch(r"vectors(\[\d+\])", error.field or "")
        raise error if row is None else error.about(f"{field}{row[1]}.vector") from None


def _vectors(
    given: Sequence[Any], texts: list[str], field: str, snapshot: IndexSnapshot, dim: int | None
) -> NDArray[np.float32] | None:
    """Return the given vectors, and the encoder's for the others; None if the index has none and none is given."""
    encoder = snapshot.retriever.encoder
    vectors = [vector_of(one, f"{field}[{at}]") for at, one in enumerate(given)]
    if not vectors or (dim is None and all(one is None for one in vectors)):
        return None
    for at, one in enumerate(vectors):
        if dim is None and one is not None:
            raise InputError(
                "unused",
                f"{field}[{at}].vector",
                "{field} is given, and the index has no vectors of {owners}; leave it out",
                owners=field,
            )
        if one is not None and dim is not None and len(one) != dim:
            raise wrong_dim(f"{field}[{at}].vector", one, dim)
    without = [at for at, one in enumerate(vectors) if one is None]
    if without:
        if encoder is None:
            raise InputError(
                "missing",
                f"{field}[{without[0]}].vector",
                "{field} is missing, and the server has no encoder; give it",
            )
        asked = [texts[at] for at in without]
        empty = first_unencodable(encoder.encode_passages, asked)
        if empty is not None:
            raise InputError(
                "empty",
                f"{field}[{without[empty]}]",
                "{field} has words in neither its title nor its text, so the encoder has no vector for it; give it "
                "some",
            )
        encoded = encoder.encode_passages(asked)
        for at, made in zip(without, encoded, strict=True):
            vectors[at] = made
    return np.stack([one for one in vectors if one is not None])
