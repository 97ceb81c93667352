"""Changes of an index over HTTP: ``POST /v1/passages`` and ``DELETE /v1/passages/{id}``.

The process that holds an index's lock takes them. A change runs on a thread of its own, so that changes that wait share
one flush of the disk, and neither the event loop nor the kernels' thread waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Index, LiveIndex
from ..errors import InputError
from ..index.change import Change
from ..index.contents import text_to_index
from ..index.generations import generation_name, log_path
from .config import ServeConfig
from .errors import RefusalError, invalid
from .keys import Principal
from .metrics import Metrics
from .schema import EdgeIn, EntityIn, PassageIn, PassagesRequest
from .snapshots import Snapshot
from .vectors import vector_of

log = logging.getLogger("hopfuse.serve")
#: Threads that commit; as many changes share a flush of the disk.
THREADS = 16
#: The type of edges between a passage and the entities that it names, as the package's own builders have it.
CONTEXT = "context"
#: Bytes of a log that are never worth a compaction.
LEAST_LOG = 2**20


class Writer:
    """Takes the changes of one index, which this process holds open for writing.

    Parameters
    ----------
    live : LiveIndex
    name : str
        As requests name it.
    changed : callable
        Called, on any thread, when something was committed.
    compact_at : float
        The log is compacted when it has grown to this share of the index.
    metrics : Metrics
    """

    def __init__(
        self, live: LiveIndex[Index], name: str, *, changed: Callable[[], None], compact_at: float, metrics: Metrics
    ) -> None:
        self._live, self.name, self._changed = live, name, changed
        self._compact_at, self._metrics = compact_at, metrics
        self._compacting = False

    def add(self, asked: PassagesRequest, snapshot: Snapshot, principal: Principal) -> int:
        """Commit what a request adds, and return its seq; called on a thread of its own."""
        rows = [_row(one, principal.sets) for one in asked.passages]
        texts = [text_to_index(one.title, one.text) for one in asked.passages]
        vectors = _vectors(asked.passages, texts, "passages", snapshot, snapshot.index.dim)
        entities = _entities(asked)
        names = [one.name for one in entities]
        corpus = snapshot.index.entity_corpus
        named = _vectors(entities, names, "entities", snapshot, None if corpus is None else corpus.dim)

        def fill(change: Change) -> None:
            change.add_passages(rows, vectors=vectors, replace=asked.replace)
            change.add_entities(names, vectors=named, missing=True)
            if asked.aliases:
                change.add_aliases(asked.aliases)
            edges = [*_mentions(asked.passages), *map(_edge, asked.edges)]
            if edges:
                change.add_edges(edges)
            facts = [*((*fact, one.id) for one in asked.passages for fact in one.facts), *asked.facts]
            if facts:
                change.add_facts(facts)

        return self._commit(fill, principal)

    def delete(self, id: str, snapshot: Snapshot, principal: Principal) -> int:
        """Commit the deletion of a passage, and return its seq; called on a thread of its own."""
        ids = snapshot.index.passage_ids
        own: str | int = id
        if len(ids) and isinstance(ids[0], int):
            if not (id.removeprefix("-").isdecimal() and len(id) < 20):
                raise RefusalError(404, "unknown", f"id is {id!r:.100}; the index's are integers", field="id")
            own = int(id)
        try:
            return self._commit(lambda change: change.delete_passages([own]), principal)
        except RefusalError as refusal:
            if refusal.status != 400:
                raise
            raise RefusalError(404, "unknown", f"there is no passage with the id {own!r:.100}", field="id") from None

    def _commit(self, fill: Callable[[Change], None], principal: Principal) -> int:
        began = time.perf_counter()
        try:
            with self._live.change(only=principal.where) as change:
                fill(change)
        except InputError as error:
            raise RefusalError(400, "invalid", str(error)) from None
        except OSError as error:
            log.exception("a change of index %s was not written", self.name)
            raise RefusalError(
                503,
                "disk",
                f"the change was not written ({error.strerror}), and nothing is changed; the server's operator finds "
                "more in the log",
            ) from None
        self._metrics.changes.labels(self.name).inc()
        self._metrics.change_seconds.observe(time.perf_counter() - began)
        self._changed()
        assert change.seq is not None
        return change.seq

    def compact_if_due(self) -> None:
        """Start a compaction where the log has grown to its share of the index, and none goes on."""
        directory, generation = self._live.directory, self._live.index.generation
        assert generation is not None
        try:
            grown = log_path(directory, generation).stat().st_size
            whole = (directory / generation_name(generation)).stat().st_size
        except FileNotFoundError:
            return  # there was no change yet, or a compaction has just ended
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


class Changes:
    """The changes that a server takes, bounded in number and bytes.

    Parameters
    ----------
    config : ServeConfig
    metrics : Metrics
    """

    def __init__(self, config: ServeConfig, metrics: Metrics) -> None:
        self._config, self._limits, self._metrics = config, config.limits, metrics
        self._writers: dict[str, Writer] = {}
        self._threads = ThreadPoolExecutor(THREADS, "hopfuse-write")
        self._waiting: Counter[str] = Counter()  # by key
        self._bytes = 0
        metrics.watch_changes(self._waiting.total)

    def take(self, name: str, live: LiveIndex[Index], changed: Callable[[], None]) -> None:
        """Take changes of an index from now on."""
        compact_at = self._config.compact_at
        self._writers[name] = Writer(live, name, changed=changed, compact_at=compact_at, metrics=self._metrics)
        self.compact_if_due(name)

    def taken(self, name: str) -> bool:
        """Return whether changes of an index are taken."""
        return name in self._writers

    def compact_if_due(self, name: str) -> None:
        """Look, beside, whether an index that is written here has a log that is worth a compaction."""
        if name in self._writers:
            self._threads.submit(self._writers[name].compact_if_due)

    async def add(
        self, asked: PassagesRequest, snapshot: Snapshot, principal: Principal, *, nbytes: int, deadline: float
    ) -> int:
        """Commit what a request adds; see :meth:`Service.add`."""
        writer = self._writer(snapshot.name)
        if len(asked.passages) > self._limits.passages:
            raise invalid(
                "passages", f"has {len(asked.passages)} entries; a request has at most {self._limits.passages}"
            )
        _check_prefix(asked.passages, principal)
        if not (asked.passages or asked.entities or asked.aliases or asked.edges or asked.facts):
            raise invalid("passages", "is missing, and nothing else is given; give what is to be added")
        return await self._run(lambda: writer.add(asked, snapshot, principal), principal, nbytes, deadline)

    async def delete(self, id: str, snapshot: Snapshot, principal: Principal, *, deadline: float) -> int:
        """Delete a passage; see :meth:`Service.delete`."""
        writer = self._writer(snapshot.name)
        return await self._run(lambda: writer.delete(id, snapshot, principal), principal, len(id), deadline)

    def close(self) -> None:
        """Wait for what runs."""
        self._threads.shutdown(wait=True)

    def _writer(self, name: str) -> Writer:
        if name not in self._writers:
            raise RefusalError(
                409,
                "read_only",
                f"this process only reads index {name}, and follows what another writes; send the change to the server "
                "that was started with --writable, or with writable = true for this index",
                field="index",
            )
        return self._writers[name]

    async def _run(self, make: Callable[[], int], principal: Principal, nbytes: int, deadline: float) -> int:
        """Run a change on a thread, and return its seq."""
        self._check_room(principal.name, nbytes)
        running = self._threads.submit(make)
        self._waiting[principal.name] += 1
        self._bytes += nbytes
        done = asyncio.wrap_future(running)
        done.add_done_callback(lambda _: self._forget(principal.name, nbytes))
        try:
            return await asyncio.wait_for(asyncio.shield(done), deadline - time.monotonic())
        except TimeoutError:
            never = running.cancel()
            what = "and nothing is changed" if never else "and the change may yet be made: send it again with replace"
            raise RefusalError(
                504, "timeout", f"timeout_ms passed before the change was on the disk, {what}", field="timeout_ms"
            ) from None
        finally:
            done.add_done_callback(lambda one: one.cancelled() or one.exception())  # seen, if nobody waits for it

    def _check_room(self, key: str, nbytes: int) -> None:
        """Refuse what is too much; where there are several keys, none takes more than a half."""
        most = self._limits.writes if len(self._config.keys) < 2 else max(1, self._limits.writes // 2)
        full = self._waiting.total() >= self._limits.writes or self._waiting[key] >= most
        if full or self._bytes + nbytes > self._limits.queue_bytes:
            raise RefusalError(
                429,
                "overloaded",
                f"{self._waiting.total()} changes wait; send the request again after the time of Retry-After",
                retry_after=1,
            )

    def _forget(self, key: str, nbytes: int) -> None:
        self._waiting[key] -= 1
        self._bytes -= nbytes


def _check_prefix(passages: list[PassageIn], principal: Principal) -> None:
    """Refuse ids without the key's prefix, whether passages have them or not."""
    for at, one in enumerate(passages):
        if principal.prefix and not str(one.id).startswith(principal.prefix):
            raise invalid(
                f"passages[{at}].id",
                f"is {one.id!r:.100}; ids that the key {principal.name} adds begin with {principal.prefix!r}",
            )


def _row(one: PassageIn, sets: Mapping[str, Any]) -> dict[str, Any]:
    """Return a passage as a change takes it; what a key's filter sets is set where it is not given."""
    return {"id": one.id, "text": one.text, "title": one.title, "metadata": {**sets, **one.metadata}}


def _entities(asked: PassagesRequest) -> list[EntityIn]:
    """Return all entities that a request names, the first of each name."""
    given = [one if isinstance(one, EntityIn) else EntityIn(one) for one in asked.entities]
    named = [name for one in asked.passages for name in one.entities]
    named += [name for one in asked.passages for fact in one.facts for name in (fact[0], fact[2])]
    found = {one.name: one for one in [*map(EntityIn, named), *given]}
    return list(found.values())


def _mentions(passages: list[PassageIn]) -> list[dict[str, Any]]:
    """Return the edges between passages and the entities that they name."""
    return [
        {"src": ("passage", one.id), "dst": ("entity", name), "type": CONTEXT}
        for one in passages
        for name in dict.fromkeys(one.entities)
    ]


def _edge(one: EdgeIn) -> dict[str, Any]:
    edge = {"src": one.src, "dst": one.dst, "weight": one.weight}
    if one.type is not None:
        edge["type"] = one.type
    if one.stated_by is not None:
        edge["stated_by"] = one.stated_by
    return edge


def _vectors(
    given: list[Any], texts: list[str], field: str, snapshot: Snapshot, dim: int | None
) -> NDArray[np.float32] | None:
    """Return vectors, those that are not given by the encoder; None where none is given and the index has none."""
    vectors = [vector_of(one, f"{field}[{at}]") for at, one in enumerate(given)]
    if not vectors or (dim is None and all(one is None for one in vectors)):
        return None
    for at, one in enumerate(vectors):
        if dim is None and one is not None:
            raise invalid(
                f"{field}[{at}].vector", f"is given, and {snapshot.name} has no vectors of {field}; leave it out"
            )
        if one is not None and len(one) != dim:
            raise invalid(f"{field}[{at}].vector", f"has {len(one)} values; {snapshot.name} has {dim} dimensions")
    without = [at for at, one in enumerate(vectors) if one is None]
    if without:
        if snapshot.encoder is None:
            raise invalid(
                f"{field}[{without[0]}].vector",
                f"is missing, and the server has no encoder for {snapshot.name}; give it",
            )
        encoded = snapshot.encoder.encode_passages([texts[at] for at in without])
        for at, made in zip(without, encoded, strict=True):
            vectors[at] = made
    return np.stack([one for one in vectors if one is not None])
