"""The service behind all protocols: the indexes, the batcher, and the course of a request.

Every protocol (JSON, Arrow, the dialects, MCP) makes a :class:`Search` and calls :meth:`Service.search`, so limits,
turns and deadlines are the same for all.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

from starlette.requests import Request

from .._validation import check_whole, counted, is_whole
from ..errors import HopfuseError, InputError
from ..index import Index, LiveIndex
from ..retriever import Retriever, calling
from .admission import Requests
from .batcher import Batcher, Work, late, stopping
from .batches import BatchPlan, Piece, RequestShare, Runner, pieces_of
from .bounds import check_most
from .budget import ByteBudget, Held
from .config import KeyConfig, ServeConfig, table_of
from .encoders import TimedEncoders
from .errors import RefusalError, gone_away, in_request
from .following import SnapshotFollower
from .found import HitReader
from .keys import Guesses, KeyRing, Principal
from .logs import RequestLog
from .metrics import Metrics, WorkerMetrics
from .retriever_cache import Desk, RetrieverCache
from .schema import AtLeast, DeletionRequest, DeletionResponse, PassagesRequest, Timings
from .searches import ANYONE, Search, SearchAnswer
from .snapshots import IndexSnapshot, SearchQuery
from .threads import DaemonThreads
from .workers import WorkerSlot
from .writing import ChangesInProgress

log = logging.getLogger("hopfuse.serve")
#: Batches that are searched at a time on the CPU, and divide its processors. One leaves some idle while Python prepares
#: it, and where its threads wait for each other.
BATCHES = 2
#: Seconds beyond the drain time for which the end waits for threads.
END_SECONDS = 1.0


class Service:
    """A server without its HTTP interface.

    Parameters
    ----------
    config : ServeConfig
    encoders : mapping of str to Encoder, optional
        Encoders of the program's own by the name of the index, instead of those that the configuration names.
    slot : WorkerSlot, optional
        The worker's slot among several.
    alone : bool
        Whether the process has no other purpose, so that its objects may be kept from the garbage collector.

    Examples
    --------
    >>> import asyncio, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse.serve import SearchQuery, Search, ServeConfig, Service
    >>> async def ask(folder, text):
    ...     service = Service(ServeConfig.read("", {"indexes": {"waters": {"path": folder, "words": "fts5"}}}))
    ...     await service.start()
    ...     answer = await service.search(Search(snapshot=service.snapshot("waters"), queries=[SearchQuery(text)]))
    ...     await service.stop()
    ...     return answer.results[0].hits[0].text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     generation = hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}]).save(folder)
    ...     asyncio.run(ask(folder, "Where is the sea?"))
    'The sea.'
    """

    def __init__(
        self,
        config: ServeConfig,
        encoders: Mapping[str, Any] | None = None,
        slot: WorkerSlot | None = None,
        *,
        alone: bool = False,
    ) -> None:
        from .. import backend_info

        config = config.own()
        self.config, self.metrics, self._alone = config, Metrics(), alone
        self.worker = None if slot is None else slot.number
        self._worker_metrics = None if slot is None else WorkerMetrics(slot, self.metrics)
        self.keys, self.requests = KeyRing(config.keys), Requests(config)
        self.guesses = Guesses(config.limits, self.metrics.wrong_keys_delayed.inc)
        self.log_request = RequestLog(config.log)
        self._encoders = encoders or {}
        limits = config.limits
        self.encoders = TimedEncoders(limits, self.metrics, lambda at: self.batcher.away(at))
        self.batcher = Batcher(
            Runner(self.metrics, self.encoders).run,
            limit=limits.batch,
            gather=-(-limits.batch // 2),
            max_requests=limits.queue_requests,
            workers=BATCHES if backend_info()["auto"] == "cpu" else 1,
            observe=self._observe,
            outside=lambda plan: plan.encodes,
            died=self.metrics.threads_replaced.inc,
        )
        self.budget, self.desk = ByteBudget(limits.queue_bytes, config.part(limits.key_bytes)), Desk()
        self.metrics.watch(self.batcher, self.budget)
        self.snapshots: dict[str, IndexSnapshot] = {}
        self._opened: list[IndexSnapshot] = []
        self._maker = Desk(1, "hopfuse-maker", self._calling)
        self._retrievers = RetrieverCache(config, self._maker)
        self._checker = DaemonThreads(1, "hopfuse-check")
        self._reader = DaemonThreads(1, "hopfuse-follow", self._calling)
        self._lives: dict[str, LiveIndex[Index]] = {}
        self.followers: dict[str, SnapshotFollower] = {}
        self.changes = ChangesInProgress(config, self.metrics, self._calling)
        self.status = "starting"
        #: The tasks of requests without an answer, and whether they were refused.
        self.unanswered: set[asyncio.Task[Any]] = set()
        self.is_over = False
        #: When the end no longer waits for threads, in the time of :func:`time.monotonic`; None if that is not set.
        self.ends: float | None = None

    def _calling(self) -> AbstractContextManager[None]:
        return calling(self.encoders)

    # ---- Life -------------------------------------------------------------------------------------------------------

    def open_all(self) -> None:
        """Open every index, before the server listens.

        Raises
        ------
        HopfuseError
            An index, a recipe or an encoder cannot be used.
        """
        self._opened = [self.open(name) for name in self.config.indexes]

    async def start(self) -> None:
        """Open the indexes if that is not done, warm them up, and become ready."""
        self.batcher.start()
        if not self._opened:
            await self._in_maker(self.open_all)
        for snapshot in self._opened:
            await self.warm_up(snapshot)
            self.serve(snapshot)
            self._follow(snapshot)
        self._opened = []
        if self._worker_metrics is not None:
            await self._worker_metrics.start()
        self.status = "ok"

    def refuse_waiting(self) -> None:
        """Refuse requests that wait for a seq, now and later; others are still answered."""
        for follower in self.followers.values():
            follower.refuse()

    def refuse_open(self) -> None:
        """Refuse the requests that have no answer yet, when a stopping server no longer waits for them."""
        self.is_over = True
        for task in tuple(self.unanswered):
            task.cancel()

    async def stop(self) -> None:
        """Refuse queued requests, and end the threads; those that hang are left behind at :attr:`ends`."""
        self.status = "stopping"
        ends = self.ends
        if ends is None:
            ends = time.monotonic() + self.config.limits.drain_seconds + END_SECONDS
        if self._worker_metrics is not None:
            await self._worker_metrics.stop()
        for follower in self.followers.values():
            await follower.stop()
        self.encoders.close()
        self.batcher.refuse()
        closer = DaemonThreads(1, "hopfuse-close")
        closing = closer.submit(self._close)
        closer.shutdown(wait=False)
        while not closing.done() and time.monotonic() < ends:
            await asyncio.sleep(0.005)
        if closing.done():
            closing.result()
            return
        self.batcher.close(0.0)  # batches that hang are refused, too
        pools = (self.batcher, self.desk, self.changes, self._maker, self._checker, self._reader)
        hanging = [one.name for pool in pools for one in pool.threads if one.is_alive()] or ["of a compaction"]
        log.error("the server ends without waiting any longer for the threads %s", ", ".join(hanging))

    def _close(self) -> None:
        """Wait for the threads, and close the indexes."""
        self.batcher.close()
        self.desk.close()
        self.changes.close()
        self.log_request.close()
        self._maker.close()
        for pool in (self._checker, self._reader):
            pool.shutdown()
        for live in self._lives.values():
            live.close()  # waits for a compaction

    def open(self, name: str) -> IndexSnapshot:
        """Open the present state of an index, and make its retrievers."""
        config = self.config.indexes[name]
        opened = Index.open(config.path, writable=True) if config.writable else Index.open(config.path, live=True)
        self._lives[name] = opened
        retriever = Retriever(
            opened.index,
            config.recipe,
            config=config.options,
            encoder=self._encoders.get(name, config.encoder),
            words=config.words,
            threads=self.config.threads,
        )
        snapshot = self._snapshot_of(name, retriever)
        level = logging.INFO if snapshot.reads_texts else logging.WARNING
        for part, cost in retriever.describe().lacks.items():
            log.log(level, "index %s is searched without %s: %s", name, part, cost)
        return snapshot

    def _snapshot_of(self, name: str, retriever: Retriever) -> IndexSnapshot:
        snapshot = IndexSnapshot(name, self.config.indexes[name], retriever)
        if self.config.limits.part_bytes is not None:
            snapshot.index.keep_parts(self.config.limits.part_bytes)
        _check_filters(snapshot, self.keys)
        return snapshot

    def _follow(self, snapshot: IndexSnapshot) -> None:
        name, live = snapshot.name, self._lives[snapshot.name]
        follower = self.followers[name] = SnapshotFollower(
            live,
            snapshot,
            make=lambda index, before: self._snapshot_of(before.name, before.retriever.of_state(index)),
            serve=self.serve,
            thread=self._reader,
            metrics=self.metrics,
            seconds=self.config.follow_seconds,
        )
        if self.config.indexes[name].writable:
            self.changes.accept_writes(name, live, follower.changed)

    def serve(self, snapshot: IndexSnapshot) -> None:
        """Search this state of an index from now on; requests in progress keep theirs."""
        before, self.snapshots[snapshot.name] = self.snapshots.get(snapshot.name), snapshot
        self._retrievers.forget(snapshot.name)
        if self._alone and (before is None or before.index.generation != snapshot.index.generation):
            self._freeze()
        self.metrics.seq.labels(snapshot.name).set(snapshot.seq)
        self.metrics.queries.labels(snapshot.name)  # there from the start, as 0
        self.changes.compact_if_due(snapshot.name)

    @staticmethod
    def _freeze() -> None:
        """Exclude a generation from full collections, which would visit every name of it, for tens of milliseconds.

        Snapshots after it are small, and are collected: some are in reference cycles.
        """
        gc.unfreeze()  # the generation before may be collected now
        gc.collect()
        gc.freeze()

    async def warm_up(self, snapshot: IndexSnapshot) -> None:
        """Search one query and a full batch by each recipe, the default one twice: the second times are kept."""
        if snapshot.index.num_passages == 0:
            return
        await self._in_maker(snapshot.warm_up)
        for retriever in snapshot.retrievers.values():
            first = SearchQuery(*retriever.sample())
            plan = BatchPlan(snapshot, retriever, 10, False, False)
            for size in (1, self.config.limits.batch):
                asked = RequestShare([first] * size, frozenset(("title", "text")), warms_up=True)
                for usual in (False, True) if retriever is snapshot.retriever else (False,):
                    until = time.monotonic() + 3600.0
                    work = self.batcher.submit(plan, asked, size=size, owner="", deadline=until, usual=usual)
                    await work.future

    async def check_keys(self, keys: Mapping[str, KeyConfig]) -> None:
        """Refuse keys whose filters do not fit the indexes, on a thread on which no request waits.

        Raises
        ------
        InputError
            The filter of a key names a column that an index does not have.
        """
        loop, snapshots = asyncio.get_running_loop(), list(self.snapshots.values())
        await loop.run_in_executor(self._checker, _check_keys, snapshots, keys)

    async def principal_of(self, request: Request) -> Principal:
        """Return the principal of a request's key; a client that sends many wrong ones waits for the refusal.

        Raises
        ------
        RefusalError
            401.
        """
        given = request.headers.get("authorization", "")
        try:
            return self.keys.principal(given)
        except RefusalError as refusal:
            if given and refusal.code == "unauthorized":
                await self.guesses.delay(request)
            raise

    async def counters(self) -> bytes:
        """Return the text of ``/metrics``, for all workers."""
        return self.metrics.text() if self._worker_metrics is None else await self._worker_metrics.text()

    # ---- A request --------------------------------------------------------------------------------------------------

    def snapshots_for(self, principal: Principal) -> dict[str, IndexSnapshot]:
        """Return the states of the indexes that a key sees."""
        if self.status != "ok":
            raise stopping(self.status)
        return {name: one for name, one in self.snapshots.items() if principal.sees(name)}

    def check_ready(self) -> None:
        """Refuse if searches are not answered, or none by texts of an index whose default recipe can read them.

        Raises
        ------
        RefusalError
            503.
        """
        for snapshot in self.snapshots_for(ANYONE).values():
            if snapshot.retriever.encodes("text"):
                self._check_encoder(snapshot.retriever)

    def _check_encoder(self, retriever: Retriever) -> None:
        """Refuse what needs an encoder of which every thread hangs."""
        refusal = self.encoders.refusal(retriever.encoder)
        if refusal is not None:
            raise refusal

    def snapshot(self, name: str | None, principal: Principal = ANYONE) -> IndexSnapshot:
        """Return the searched state of an index; None names the first that the key sees."""
        seen = self.snapshots_for(principal)
        if not seen:
            raise RefusalError(
                "forbidden", "index", "the key {key} sees no {field}; use another key", key=principal.name
            )
        wanted = next(iter(seen)) if name is None else name
        if wanted not in seen:
            raise RefusalError(
                "unknown", "index", "{field} is {given!r}; there are: {allowed}", given=name, allowed=", ".join(seen)
            )
        return seen[wanted]

    async def snapshot_at(
        self, name: str | None, principal: Principal, at_least: AtLeast, timeout_ms: int | None
    ) -> IndexSnapshot:
        """Return the searched state of an index once it has at least a seq, or what is committed now, in time.

        Raises
        ------
        RefusalError
            504: the timeout passed before. 429: too many requests wait. 503: the server stops.
        """
        snapshot = self.snapshot(name, principal)
        if at_least is None or (isinstance(at_least, int) and at_least <= snapshot.seq):
            return snapshot
        waiting = sum(follower.waiting for follower in self.followers.values())
        if waiting >= self.config.limits.queue_requests:
            raise RefusalError(
                "overloaded",
                "at_least",
                "{field} is given, and {waiting} requests wait for a seq already; at most {allowed} may ({limit} of "
                "the server); send the request again after Retry-After",
                waiting=waiting,
                allowed=self.config.limits.queue_requests,
                limit="limits.queue_requests",
            ).after(1)
        await self.followers[snapshot.name].reach(at_least, self._deadline(timeout_ms))
        return self.snapshot(snapshot.name, principal)

    def check_deadline(self, principal: Principal, size: int, timeout_ms: int | None, arrived: float) -> None:
        """Refuse so many queries of a key if they cannot be answered in time, even if they need no encoder."""
        self.batcher.check_deadline(principal.name, size, arrived + self._timeout(timeout_ms) / 1000)

    async def search(self, search: Search) -> SearchAnswer:
        """Answer a request; one that is cancelled is withdrawn.

        Parameters
        ----------
        search : Search

        Raises
        ------
        RefusalError
        """
        limits = self.config.limits
        timeout_ms = self._timeout(search.timeout_ms)
        check_whole(search.k, "k", limits.k)
        check_most(len(search.queries), "queries", limits, "queries")
        hits = len(search.queries) * min(search.k, search.snapshot.index.num_passages)
        check_most(hits, None, limits, "hits", "possible hit")
        if search.trace and search.per_document is not None:
            raise InputError(
                "conflict",
                "per_document",
                "{field} is given with {@trace}, which would explain the whole ranking; leave one of them out",
            )
        if search.trace and search.k * len(search.queries) > limits.traced:
            raise InputError(
                "limit",
                "trace",
                "{field} is requested for {queries} with k = {k}; queries times k must be at most {allowed}",
                queries=counted(len(search.queries), "query"),
                k=search.k,
                allowed=limits.traced,
            )
        deadline = search.arrived + timeout_ms / 1000
        retriever = await self._retrievers.of(search, deadline)
        if search.is_long:
            pieces = await self.desk.run(search.owner, _divided, search, retriever, self.batcher.limit)
        else:
            pieces = _divided(search, retriever, self.batcher.limit)
        if any(piece.encodes for piece in pieces):
            self._check_encoder(retriever)
        places = [piece.places for piece in pieces]
        works = self._submit(search, retriever, pieces, deadline)
        timer = asyncio.get_running_loop().call_later(deadline - time.monotonic(), self._end, works, late())
        try:
            parts = [await _outcome(work, part) for work, part in zip(works, places, strict=True)]
        finally:
            self._end(works, gone_away())
            timer.cancel()
        queued, searched = _stages(works)
        self.metrics.stages["queued"].observe(queued)
        self.metrics.stages["search"].observe(searched)
        found = parts[0]
        if len(parts) > 1:
            placed = dict(zip(chain(*places), chain(*parts), strict=True))
            found = [placed[at] for at in range(len(search.queries))]
        return SearchAnswer(
            found,
            search.snapshot,
            Timings(
                queued_ms=round(1000 * queued, 3),
                batch=max(work.batch for work in works),
                search_ms=round(1000 * searched, 3),
            ),
            HitReader(search.snapshot, retriever, search.fields),
        )

    async def add(self, asked: PassagesRequest, principal: Principal, held: Held) -> int:
        """Commit a change, and return its seq once it is on the disk; ``held`` accounts for its bytes until then.

        Raises
        ------
        RefusalError
            400: it names something that does not exist, or adds something that does. 409: this process only reads the
            index. Nothing is changed.
        """
        snapshot, deadline = self.snapshot(asked.index, principal), self._deadline(asked.timeout_ms)
        return await self.changes.add(asked, snapshot, principal, held=held, deadline=deadline)

    async def delete(self, id: str, index: str | None, principal: Principal, timeout_ms: int | None) -> int:
        """Delete a passage, and return the seq of the change once it is on the disk.

        Raises
        ------
        RefusalError
            404: no passage has the id. 409: this process only reads the index.
        """
        snapshot, deadline = self.snapshot(index, principal), self._deadline(timeout_ms)
        return await self.changes.delete(id, snapshot, principal, deadline=deadline)

    async def delete_some(self, asked: DeletionRequest, principal: Principal, held: Held) -> DeletionResponse:
        """Delete passages by ids, conditions or document, and return what that deletes once it is on the disk.

        Raises
        ------
        RefusalError
            404: no passage has one of the ids. 409: this process only reads the index. Nothing is changed.
        """
        snapshot, deadline = self.snapshot(asked.index, principal), self._deadline(asked.timeout_ms)
        return await self.changes.delete_some(asked, snapshot, principal, held=held, deadline=deadline)

    def _deadline(self, timeout_ms: int | None) -> float:
        return time.monotonic() + self._timeout(timeout_ms) / 1000

    def _timeout(self, given: int | None) -> int:
        limits = self.config.limits
        if given is None:
            return limits.timeout_ms
        if not is_whole(given) or not 1 <= given <= limits.max_timeout_ms:
            raise InputError(
                "range",
                "timeout_ms",
                "{field} is {given!r}; it must be a whole number from 1 to {most} ({limit} of the server)",
                given=given,
                most=limits.max_timeout_ms,
                limit="limits.max_timeout_ms",
            )
        return given

    def _submit(self, search: Search, retriever: Retriever, pieces: Sequence[Piece], deadline: float) -> list[Work]:
        """Queue all pieces of a request, or none."""
        works: list[Work] = []
        k = min(search.k, max(1, search.snapshot.index.num_passages))
        alone = search if search.trace else None  # a trace would delay other requests
        try:
            for piece in pieces:
                which: dict[str, Any] = {"encodes": piece.encodes, "makes": bool(piece.parts), "alone": alone}
                restricted = piece.parts is not None
                plan = BatchPlan(search.snapshot, retriever, k, search.trace, restricted, search.per_document, **which)
                queries, sees_all = [search.queries[at] for at in piece.places], search.principal.where is None
                asked = RequestShare(queries, search.fields, search.strict, sees_all)
                who: dict[str, Any] = {"owner": search.principal.name, "deadline": deadline, "usual": not search.trace}
                what: dict[str, Any] = {"size": len(queries), "parts": piece.parts, "request": search}
                works.append(self.batcher.submit(plan, asked, **what, **who))
        except RefusalError as refusal:
            self._end(works, refusal)
            raise
        return works

    def _end(self, works: Sequence[Work], refusal: RefusalError) -> None:
        """Withdraw the unanswered parts of a request with a refusal."""
        for work in works:
            self.batcher.withdraw(work, refusal)
            if not work.future.cancelled():
                work.future.exception()  # mark it as retrieved: parts are awaited one after another

    async def _in_maker(self, make: Callable[..., Any], *given: Any) -> Any:
        return await self._maker.run("", make, *given)

    def _observe(self, works: list[Work], seconds: float) -> None:
        if not works[0].payload.warms_up:
            self.metrics.batch_queries.observe(works[0].batch)


def _check_keys(snapshots: Sequence[IndexSnapshot], keys: Mapping[str, KeyConfig]) -> None:
    made = KeyRing(keys)
    for snapshot in snapshots:
        _check_filters(snapshot, made)


def _check_filters(snapshot: IndexSnapshot, keys: KeyRing) -> None:
    """Find the passages that keys see now, not at the first request of each."""
    for principal in keys.all():
        if principal.sees(snapshot.name):
            try:
                snapshot.rows(None, principal, "filter")
            except InputError as error:
                raise error.at(f"{table_of('keys', principal.name)}.filter, index {snapshot.name}") from None


def _stages(works: Sequence[Work]) -> tuple[float, float]:
    """Return the seconds until the first piece of a request was searched, and from then until the last one was."""
    began = min(work.started for work in works)
    return began - works[0].queued, max(work.started + work.took for work in works) - began


def _divided(search: Search, retriever: Retriever, limit: int) -> list[Piece]:
    """Check a request's queries, and return its pieces."""
    _check(retriever, search.queries)
    encodes = [retriever.encodes(query.text, query.vector) for query in search.queries]
    return pieces_of(search.queries, encodes, search.snapshot, limit)


def _check(retriever: Retriever, queries: Sequence[SearchQuery]) -> None:
    """Refuse a query that lacks an input which cannot be made, or whose vector does not fit."""
    for at, query in enumerate(queries):
        try:
            retriever.check_question(query.text, query.vector, query.entities)
        except HopfuseError as error:
            raise in_request(error, f"queries[{at}]") from None


#: A field of an error that has a place among the queries: an argument of a search, or of a request already.
_OF_QUERY = re.compile(r"(queries|questions|texts|vectors|entities|allow)\[(\d+)\]")
_FIELDS = {"questions": ".text", "texts": ".text", "vectors": ".vector", "queries": ""}


async def _outcome(work: Work, places: Sequence[int]) -> Any:
    """Return the outcome of a part of a request; an error of the library names the field of the request."""
    try:
        return await work.future
    except InputError as error:
        found = _OF_QUERY.match(error.field or "")
        if found is None:
            raise
        query = f"queries[{places[int(found[2])]}]{_FIELDS.get(found[1], '.' + found[1])}"
        raise error.at(field=query + str(error.field)[found.end() :]) from None
