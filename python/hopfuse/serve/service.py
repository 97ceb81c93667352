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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from starlette.requests import Request

from .. import Index, LiveIndex, backend_info
from .._validation import check_whole, counted
from ..errors import HopfuseError, InputError
from ..retriever import Retriever
from .batcher import Batcher, Work, late, stopping
from .batches import Plan, RequestShare, Runner
from .config import ServeConfig
from .errors import RefusalError, gone_away, in_request
from .following import Follower
from .guesses import Guesses
from .keys import Keys, Principal
from .logs import RequestLog
from .metrics import Metrics
from .options import RetrieverCache
from .schema import PassagesRequest, Timings
from .searches import ANYONE, Answer, Search
from .siblings import Siblings
from .snapshots import Query, Snapshot
from .watching import Watching
from .workers import Place
from .writing import Changes

log = logging.getLogger("hopfuse.serve")
#: Batches that are searched at a time on the CPU, and divide its processors. One leaves some idle while Python prepares
#: it, and where its threads wait for each other.
BATCHES = 2


class Service:
    """A server without its HTTP interface.

    Parameters
    ----------
    config : ServeConfig
    encoders : mapping of str to Encoder, optional
        Encoders of the program's own by the name of the index, instead of those that the configuration names.
    place : Place, optional
        The worker's place among several.
    alone : bool
        Whether the process has no other purpose, so that its objects may be kept from the garbage collector.

    Examples
    --------
    >>> import asyncio, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse.serve import ServeConfig, Service
    >>> from hopfuse.serve.searches import Search
    >>> from hopfuse.serve.snapshots import Query
    >>> async def ask(folder, text):
    ...     service = Service(ServeConfig.read("", {"indexes": {"waters": {"path": folder, "words": "fts5"}}}))
    ...     await service.start()
    ...     answer = await service.search(Search(snapshot=service.snapshot("waters"), queries=[Query(text)]))
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
        place: Place | None = None,
        *,
        alone: bool = False,
    ) -> None:
        config = config.own()
        self.config, self.metrics, self._alone = config, Metrics(), alone
        self.worker = None if place is None else place.number
        self._siblings = None if place is None else Siblings(place, self.metrics)
        self.keys, self.guesses = Keys(config.keys), Guesses(config.limits, self.metrics.wrong_keys_delayed.inc)
        self.log_request = RequestLog(config.log)
        self._encoders = encoders or {}
        limits = config.limits
        self.batcher = Batcher(
            Runner(self.metrics).run,
            limit=limits.batch,
            gather=-(-limits.batch // 2),
            max_requests=limits.queue_requests,
            max_bytes=limits.queue_bytes,
            workers=BATCHES if backend_info()["auto"] == "cpu" else 1,
            observe=self._observe,
        )
        self.metrics.watch(self.batcher)
        self.snapshots: dict[str, Snapshot] = {}
        self._opened: list[Snapshot] = []
        self._maker = ThreadPoolExecutor(1, "hopfuse-maker")
        self._retrievers = RetrieverCache(config, self._maker)
        self._reader = ThreadPoolExecutor(1, "hopfuse-follow")
        self.turn = asyncio.Lock()  # of large bodies, to be decoded
        self._lives: dict[str, LiveIndex[Index]] = {}
        self.followers: dict[str, Follower] = {}
        self.changes = Changes(config, self.metrics)
        self.status = "starting"

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
        if self._siblings is not None:
            await self._siblings.start()
        self.status = "ok"

    async def stop(self) -> None:
        """Refuse queued requests, and end the threads."""
        self.status = "stopping"
        if self._siblings is not None:
            await self._siblings.stop()
        for follower in self.followers.values():
            await follower.stop()
        self.batcher.close()
        self.changes.close()
        self.log_request.close()
        for pool in (self._maker, self._reader):
            pool.shutdown(wait=True)
        for live in self._lives.values():
            await asyncio.to_thread(live.close)  # waits for a compaction

    def open(self, name: str) -> Snapshot:
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

    def _snapshot_of(self, name: str, retriever: Retriever) -> Snapshot:
        snapshot = Snapshot(name, self.config.indexes[name], retriever)
        _check_filters(snapshot, self.keys)
        return snapshot

    def _follow(self, snapshot: Snapshot) -> None:
        name, live = snapshot.name, self._lives[snapshot.name]
        follower = self.followers[name] = Follower(
            live,
            snapshot,
            make=lambda index, before: self._snapshot_of(before.name, before.retriever.of_state(index)),
            serve=self.serve,
            thread=self._reader,
            metrics=self.metrics,
            seconds=self.config.follow_seconds,
        )
        if self.config.indexes[name].writable:
            self.changes.take(name, live, follower.changed)

    def serve(self, snapshot: Snapshot) -> None:
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

    async def warm_up(self, snapshot: Snapshot) -> None:
        """Search one query and a full batch by each recipe, which also measures the default recipe's batch times."""
        if snapshot.index.num_passages == 0:
            return
        await self._in_maker(snapshot.warm_up)
        for retriever in snapshot.retrievers.values():
            first = Query(*retriever.sample())
            plan, usual = Plan(snapshot, retriever, 10, False, False), retriever is snapshot.retriever
            for size in (1, self.config.limits.batch):
                asked = RequestShare([first] * size, frozenset(("title", "text")), warms_up=True)
                until = time.monotonic() + 3600.0
                work = self.batcher.submit(plan, asked, size=size, nbytes=0, owner="", deadline=until, usual=usual)
                await work.future

    async def check_keys(self, keys: Keys) -> None:
        """Refuse keys whose filters do not fit the indexes.

        Raises
        ------
        InputError
            The filter of a key names a column that an index does not have.
        """
        for snapshot in list(self.snapshots.values()):
            await self._in_maker(_check_filters, snapshot, keys)

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
        return self.metrics.text() if self._siblings is None else await self._siblings.text()

    # ---- A request --------------------------------------------------------------------------------------------------

    def snapshots_for(self, principal: Principal) -> dict[str, Snapshot]:
        """Return the states of the indexes that a key sees."""
        if self.status != "ok":
            raise stopping(self.status)
        return {name: one for name, one in self.snapshots.items() if principal.sees(name)}

    def snapshot(self, name: str | None, principal: Principal = ANYONE) -> Snapshot:
        """Return the searched state of an index; None names the first that the key sees."""
        seen = self.snapshots_for(principal)
        wanted = next(iter(seen)) if name is None else name
        if wanted not in seen:
            raise RefusalError(
                "unknown", "index", "{field} is {given!r}; there are: {allowed}", given=name, allowed=", ".join(seen)
            )
        return seen[wanted]

    async def snapshot_at(
        self, name: str | None, principal: Principal, at_least: int | None, timeout_ms: int | None
    ) -> Snapshot:
        """Return the searched state of an index once it has at least a seq, within a request's timeout.

        Raises
        ------
        RefusalError
            504: the timeout passed before.
        """
        snapshot = self.snapshot(name, principal)
        if at_least is None or at_least <= snapshot.seq:
            return snapshot
        await self.followers[snapshot.name].reach(at_least, self._deadline(timeout_ms))
        return self.snapshot(snapshot.name, principal)

    def check_deadline(self, principal: Principal, size: int, timeout_ms: int | None, arrived: float) -> None:
        """Refuse so many queries of a key if they cannot be answered in time."""
        self.batcher.check_deadline(principal.name, size, arrived + self._timeout(timeout_ms) / 1000)

    async def search(self, search: Search, *, watch: Callable[[], Awaitable[Any]] | None = None) -> Answer:
        """Answer a request.

        Parameters
        ----------
        search : Search
        watch : callable, optional
            A coroutine function that returns when the client has left; the request is then withdrawn.

        Raises
        ------
        RefusalError
        """
        limits = self.config.limits
        timeout_ms = self._timeout(search.timeout_ms)
        check_whole(search.k, "k", limits.k)
        check_whole(len(search.queries), "queries", limits.queries)
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
        retriever = await self._retrievers.of(search.snapshot, search.recipe, search.options, deadline)
        _check(retriever, search.queries)
        places = self._places(search.queries)
        works = self._submit(search, retriever, places, deadline)
        timer = asyncio.get_running_loop().call_later(deadline - time.monotonic(), self._end, works, late())
        watching = None if watch is None else Watching(watch, lambda: self._end(works, gone_away()))
        try:
            parts = [await _outcome(work, part) for work, part in zip(works, places, strict=True)]
        finally:
            self._end(works, gone_away())
            timer.cancel()
            if watching is not None:
                watching.end()
        for work in works:
            self.metrics.stages["queued"].observe(work.started - work.queued)
            self.metrics.stages["search"].observe(work.took)
        results = parts[0]
        if len(parts) > 1:
            placed = dict(zip(chain(*places), chain(*parts), strict=True))
            results = [placed[at] for at in range(len(search.queries))]
        return Answer(
            results,
            search.snapshot,
            Timings(
                queued_ms=round(1000 * max(work.started - work.queued for work in works), 3),
                batch=max(work.batch for work in works),
                search_ms=round(1000 * sum(work.took for work in works), 3),
            ),
        )

    async def add(self, asked: PassagesRequest, principal: Principal, nbytes: int) -> int:
        """Commit a change, and return its seq once it is on the disk.

        Raises
        ------
        RefusalError
            400: it names something that does not exist, or adds something that does. 409: this process only reads the
            index. Nothing is changed.
        """
        snapshot, deadline = self.snapshot(asked.index, principal), self._deadline(asked.timeout_ms)
        return await self.changes.add(asked, snapshot, principal, nbytes=nbytes, deadline=deadline)

    async def delete(self, id: str, index: str | None, principal: Principal, timeout_ms: int | None) -> int:
        """Delete a passage, and return the seq of the change once it is on the disk.

        Raises
        ------
        RefusalError
            404: no passage has the id. 409: this process only reads the index.
        """
        snapshot, deadline = self.snapshot(index, principal), self._deadline(timeout_ms)
        return await self.changes.delete(id, snapshot, principal, deadline=deadline)

    def _deadline(self, timeout_ms: int | None) -> float:
        return time.monotonic() + self._timeout(timeout_ms) / 1000

    def _timeout(self, given: int | None) -> int:
        limits = self.config.limits
        return limits.timeout_ms if given is None else check_whole(given, "timeout_ms", limits.max_timeout_ms)

    def _places(self, queries: Sequence[Query]) -> list[list[int]]:
        """Return the positions of queries by batch: a batch has queries with filters, or queries without."""
        limit, found = self.batcher.limit, []
        for restricted in (False, True):
            places = [at for at, query in enumerate(queries) if (query.allow is not None) == restricted]
            found += [places[at : at + limit] for at in range(0, len(places), limit)]
        return found

    def _submit(self, search: Search, retriever: Retriever, places: list[list[int]], deadline: float) -> list[Work]:
        """Queue all parts of a request, or none."""
        works: list[Work] = []
        queries, k = search.queries, min(search.k, max(1, search.snapshot.index.num_passages))
        alone = search if search.trace else None  # a trace would delay other requests
        try:
            for part in places:
                restricted = queries[part[0]].allow is not None
                plan = Plan(search.snapshot, retriever, k, search.trace, restricted, search.per_document, alone)
                sees_all, nbytes = search.principal.where is None, search.nbytes // len(places)
                asked = RequestShare([queries[at] for at in part], search.fields, search.strict, sees_all)
                who: dict[str, Any] = {"owner": search.principal.name, "deadline": deadline, "usual": not search.trace}
                works.append(self.batcher.submit(plan, asked, size=len(part), nbytes=nbytes, **who))
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
        return await asyncio.get_running_loop().run_in_executor(self._maker, make, *given)

    def _observe(self, works: list[Work], seconds: float) -> None:
        if not works[0].payload.warms_up:
            self.metrics.batch_queries.observe(works[0].batch)


def _check_filters(snapshot: Snapshot, keys: Keys) -> None:
    """Find the passages that keys see now, not at the first request of each."""
    for principal in keys.all():
        if principal.sees(snapshot.name):
            snapshot.rows(None, principal, "filter")


def _check(retriever: Retriever, queries: Sequence[Query]) -> None:
    """Refuse a query that lacks an input which cannot be made, or whose vector does not fit."""
    for at, query in enumerate(queries):
        try:
            retriever.check_question(query.text, query.vector, query.entities)
        except HopfuseError as error:
            raise in_request(error, f"queries[{at}]") from None


#: A field of an error that has a place among the queries: an argument of a search, or of a request already.
_OF_QUERY = re.compile(r"(queries|questions|vectors|entities|allow)\[(\d+)\]")
_FIELDS = {"questions": ".text", "vectors": ".vector", "queries": ""}


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
