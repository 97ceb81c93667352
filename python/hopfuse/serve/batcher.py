"""Batch queued requests for worker threads: the first takes what is queued whenever it is free.

There is no timer: requests that find a worker idle are searched at once, together if the event loop read them in one
turn, and requests that arrive while all workers are busy form the next batches. Batches that run at a time divide the
processors, which costs less than the threads of one call waiting for each other. The queue is bounded in requests;
their bytes are counted from their arrival (:mod:`hopfuse.serve.budget`). A request whose deadline cannot be met is
refused on arrival, unless that is predicted by times that are out of date: one request of its kind is a probe that
corrects them. One whose deadline passes in the queue is not searched.

A batch may call something outside, such as an encoder, and wait for its turn at it. Another thread then takes its
place, with batches that do not, so there are twice as many threads as batches at a time. While batches wait so, others
are predicted without them. A call is charged to the owners of its batch, and waiting for a turn to nobody. An owner has
one batch at a call, or before it, while other owners also send such work.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from .._threads import own_thread, sharing
from .costs import STALE, Costs, Load
from .errors import RefusalError
from .threads import contained, join

log = logging.getLogger("hopfuse.serve")
#: Seconds since an owner's last work for which a worker is left to it while others make parts of an index, and others
#: call the encoder for one batch at a time.
RECENT = 1.0
#: Above so many queries, a batch takes a power of two of them: a walk of 17 to 31 takes as long as one of 32.
LANES = 16
#: Multiple of its estimated time that a request must have until its deadline: one that is too late has cost its search.
MARGIN = 1.25


@dataclass(eq=False, slots=True)
class _Batch:
    """A running batch, and its time, which it shares with those that run beside it."""

    load: Load
    kind: Hashable
    works: list[Work]
    owners: set[str]
    began: float
    #: Whether it may call something outside; whether it has not yet, and what it is at.
    outside: bool
    ahead: bool
    at: Literal["search", "turn", "call"] = "search"
    #: Whether another batch has its place now, and whether one has had it.
    waits: bool = False
    lent: bool = False
    #: Seconds for which it had a thread's place; and its own, of searching and of calls, but not of waiting for a turn.
    thread: float = 0.0
    own: float = 0.0


@dataclass(eq=False, slots=True)
class Work:
    """A queued request, or a piece of one that fits into a batch.

    Attributes
    ----------
    group : hashable
        A batch has work of one group only.
    size : int
        Number of queries.
    load : Load
        What it takes.
    request : object
        What the pieces of one request have in common.
    payload
        Argument for ``run``.
    owner : str
        Name of the key, among which turns are shared.
    deadline : float
        In the time of :func:`time.monotonic`.
    future : asyncio.Future
        The outcome, or a :class:`RefusalError`.
    usual : bool
        Whether its time counts in the mean batch times.
    started, took : float
        Start and duration of its batch, in seconds.
    batch : int
        Queries in its batch.
    charged : float
        Seconds that its owner was charged when it was taken.
    alone : float
        Estimated seconds in batches of its own.
    """

    group: Hashable
    size: int
    load: Load
    request: object
    payload: Any
    owner: str
    deadline: float
    future: asyncio.Future[Any]
    usual: bool = True
    queued: float = field(default_factory=time.monotonic)
    started: float = 0.0
    took: float = 0.0
    batch: int = 0
    waits: bool = False
    charged: float = 0.0
    alone: float = 0.0


class Batcher:
    """The queue and its worker.

    Parameters
    ----------
    run : callable
        ``run(group, payloads)``, called on the worker thread; returns an outcome or a :class:`RefusalError` for each
        payload.
    limit : int
        Most queries in a batch.
    gather : int, optional
        Queries from which on a batch takes no further work; by default the limit.
    max_requests : int
        Limit of the queue.
    workers : int
        Most batches at a time.
    observe : callable, optional
        ``observe(works, seconds)``, called on the event loop after each batch.
    outside : callable, optional
        ``outside(group)`` returns whether batches of the group may call something outside the server's control, within
        :meth:`away`. While ``workers`` of them run, further ones are not taken.
    died : callable, optional
        Called when a thread has died, by an error such as SystemExit; another one takes its place.

    Examples
    --------
    >>> import asyncio, time
    >>> from hopfuse.serve import Batcher
    >>> async def ask(text):
    ...     batcher = Batcher(lambda group, texts: [len(one) for one in texts], limit=8, max_requests=9)
    ...     batcher.start()
    ...     work = batcher.submit("group", text, size=1, owner="me", deadline=time.monotonic() + 60)
    ...     answer = await work.future
    ...     batcher.close()
    ...     return answer
    >>> asyncio.run(ask("a river"))
    7
    """

    def __init__(
        self,
        run: Callable[[Any, list[Any]], Sequence[Any]],
        *,
        limit: int,
        gather: int | None = None,
        max_requests: int,
        workers: int = 1,
        observe: Callable[[list[Work], float], None] | None = None,
        outside: Callable[[Any], bool] = lambda group: False,
        died: Callable[[], None] = lambda: None,
    ) -> None:
        self._run, self.limit, self._observe = run, limit, observe
        self._outside, self._died = outside, died
        self._gather = limit if gather is None else gather
        self.costs = Costs(self._gather)
        self._max_requests = max_requests
        self._ready = threading.Condition()
        self._queues: dict[str, dict[Hashable, deque[Work]]] = {}  # by owner and group; none is empty
        self._turns: dict[str, float] = {}  # seconds that were spent, by owner that waits or is served
        self._served = 0.0  # the least of them
        self._waiting: dict[str, Load] = {}  # by owner
        self._serving: dict[str, int] = {}  # running works, by owner
        self._came: dict[tuple[str, bool], float] = {}  # when the latest work came, by owner and whether outside
        self._probes: dict[Hashable, object] = {}  # the request that is let pass, by kind
        self._pieces: dict[object, int] = {}  # number that wait, by request
        self._load = Load()  # of all that waits
        self._alone = 0.0  # the sum of its estimates
        self._running: list[_Batch] = []
        self._seen = 0.0  # until when their costs are counted
        self._gives_way = False  # whether the latest that might wait outside did
        self._woken = self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._workers = workers
        self._at_work: dict[int, _Batch] = {}  # by thread
        self._threads = [self._thread(number) for number in range(2 * workers)]

    def _thread(self, number: int) -> threading.Thread:
        return own_thread(self._work, number, name=f"hopfuse-kernel-{number}")

    def start(self) -> None:
        """Start the workers; outcomes are set on the running event loop."""
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()

    @property
    def threads(self) -> list[threading.Thread]:
        """The workers' threads."""
        return list(self._threads)

    def refuse(self) -> None:
        """Refuse queued work, and further work."""
        with self._ready:
            self._closed = True
            left = [one for groups in self._queues.values() for works in groups.values() for one in works]
            for one in left:
                self._forget(one)
            self._queues.clear()
            self._ready.notify_all()
        for one in left:
            _settle(one, stopping())

    def close(self, seconds: float | None = None) -> bool:
        """Stop the workers after their present batches; queued work is refused.

        Parameters
        ----------
        seconds : float, optional
            Most seconds to wait for them; work of batches that take longer is also refused. By default as long as it
            takes.

        Returns
        -------
        bool
            Whether all workers have ended.
        """
        self.refuse()
        if not join(self._threads, seconds):
            return True
        with self._ready:
            late_ones = [one for batch in self._running for one in batch.works]
        for one in late_ones:
            _settle(one, stopping())
        return False

    def submit(
        self,
        group: Hashable,
        payload: Any,
        *,
        size: int,
        owner: str,
        deadline: float,
        parts: int | None = None,
        request: object = None,
        usual: bool = True,
    ) -> Work:
        """Queue work and return it; its ``future`` gets the outcome.

        Parameters
        ----------
        group, payload, size, owner, deadline, usual
            As of :class:`Work`.
        parts : int, optional
            For queries with filters: the parts of an index that have to be made for them.
        request : object, optional
            The request of which this is a piece; its pieces count as one request. By default the work itself.

        Raises
        ------
        RefusalError
            429: the queue is full, or the deadline cannot be met. 504: it has passed.
        """
        loop, outside = asyncio.get_running_loop(), self._outside(group)
        load, request = load_of(size, parts, outside), object() if request is None else request
        work = Work(group, size, load, request, payload, owner, deadline, loop.create_future(), usual)
        with self._ready:
            if request not in self._pieces:
                self.check_full()
            work.alone = self.check_deadline(owner, size, deadline, parts, outside, request)
            queue = self._queues.setdefault(owner, {}).setdefault(group, deque())
            queue.append(work)
            work.waits = True
            self._pieces[request] = self._pieces.get(request, 0) + 1
            self._load += load
            self._alone += work.alone
            self._turns.setdefault(owner, self._served)
            self._came[owner, outside] = time.monotonic()
            self._waiting[owner] = self._waiting.get(owner, Load()) + load
            if not self._woken and self._may_take():
                self._woken = True
                loop.call_soon(self._wake)  # after the other requests of this turn of the loop
        return work

    def _wake(self) -> None:
        with self._ready:
            self._woken = False
            self._ready.notify()

    def _may_take(self) -> bool:
        """Return whether a thread may take a batch now."""
        return self._searching() < self._workers and any(map(self._allowed, self._queues))

    def _searching(self) -> int:
        """Return the number of batches that run and do not wait."""
        return sum(not one.waits for one in tuple(self._running))

    @contextlib.contextmanager
    def away(self, at: Literal["turn", "call"]) -> Iterator[Callable[[], None]]:
        """Tell that this thread's batch calls something outside, or waits for its turn to, for the time being.

        Yields a function that lets another thread take its place meanwhile.
        """
        batch = self._at_work.get(threading.get_ident())
        if batch is None:  # it is another thread of the program
            yield lambda: None
            return

        def lend() -> None:
            with self._ready:
                self._count_costs()
                batch.waits = batch.lent = self._gives_way = True
                self._ready.notify()

        with self._ready:
            self._count_costs()
            batch.at = at
        try:
            yield lend
        finally:
            with self._ready:
                self._count_costs()
                batch.at, batch.waits, batch.ahead = "search", False, batch.ahead and at == "turn"
                self._ready.notify()

    def withdraw(self, work: Work, refusal: RefusalError) -> None:
        """Remove work whose client left or whose deadline passed from the queue; a running batch is not interrupted."""
        with self._ready:
            if work.waits:
                queue = self._queues[work.owner][work.group]
                queue.remove(work)
                self._forget(work)
                self._prune(work.owner, work.group)
            self._forget_probes()
        _settle(work, refusal)

    @property
    def is_busy(self) -> bool:
        """Return whether a batch runs or work waits."""
        return bool(self._running or self._queues)

    @property
    def requests(self) -> int:
        """The number of queued requests."""
        return len(self._pieces)

    @property
    def queries(self) -> int:
        """The number of queued queries."""
        return self._load.queries

    def wait_of(
        self, owner: str, size: int, parts: int | None = None, outside: bool = False, since: float = -math.inf
    ) -> float:
        """Return the estimated seconds until ``size`` more queries of an owner would be answered.

        ``parts``: as of :meth:`submit`; ``outside``: whether their batch may call something outside; ``since``: as of
        :meth:`BatchTimes.of`.
        """
        own, of = load_of(size, parts, outside), partial(self.costs.of, outside=outside, since=since)
        with self._ready:
            ahead, waiting = self._load, self._waiting.get(owner, Load())
            if self._gives_way and not outside:  # batches that wait let its own pass
                ahead, waiting = ahead.inside, waiting.inside
            owners = len(self._queues) + (owner not in self._queues)
            if owners > 1:  # turns are shared
                ahead = min(ahead, waiting.by(owners) + own.by(owners - 1), key=of)
            together = min(self._workers, 1 + self._searching())  # batches that share the processors with its own
            makes = None if parts is None else min(parts, self.costs.most_parts)
            batch = self.costs.of(load_of(min(size, self._gather), makes, outside), since=since)
            self._count_costs()
            left = sum(max(0.0, of(one.load) - (one.own if outside else one.thread)) for one in self._running)
            return left + of(ahead + own) + (together - 1) * batch

    def _count_costs(self) -> None:
        """Add the time since the last call to what the running batches have spent."""
        now = time.monotonic()
        since, self._seen = now - self._seen, now
        share = since / max(1, self._searching())
        for one in self._running:
            one.thread += 0.0 if one.waits else share
            one.own += {"search": share, "turn": 0.0, "call": since}[one.at]

    def check_full(self) -> None:
        """Refuse a request if the queue has no room for it."""
        if self._closed:
            raise stopping()
        if self.requests >= self._max_requests:
            raise RefusalError(
                "overloaded",
                None,
                "the queue is full ({requests} requests wait, {limit} of the server); send the request again after "
                "Retry-After",
                requests=self.requests,
                limit="limits.queue_requests",
            ).after(max(1.0, self.wait_of("", 1)))

    def check_deadline(
        self,
        owner: str,
        size: int,
        deadline: float,
        parts: int | None = None,
        outside: bool = False,
        request: object = None,
    ) -> float:
        """Refuse so many queries of an owner if their deadline has passed or will not be met.

        If only averages that are out of date say so, the request becomes the probe of its kind, if there is none.

        Returns
        -------
        float
            The estimated seconds of only these queries.
        """
        now, given = time.monotonic(), (owner, size, parts, outside)
        left = deadline - now
        if left <= 0:
            raise late()
        alone = self.costs.alone(load_of(size, parts, outside))
        ahead = self._alone + sum(work.alone for batch in tuple(self._running) for work in batch.works)
        if MARGIN * (ahead + self._workers * alone) <= left:  # even if nothing shared a batch
            return alone
        wait = MARGIN * self.wait_of(*given)
        if wait <= left:
            return alone
        known = MARGIN * self.wait_of(*given, since=now - STALE)
        if known <= left and self._may_probe(self.costs.kind(load_of(size, parts, outside)), request):
            return alone
        raise RefusalError(
            "overloaded",
            "timeout_ms",
            "the request would be answered in about {wait} ms, and {field} leaves {left}; send it again after "
            "Retry-After, or with a larger {field}",
            wait=round(1000 * wait),
            left=round(1000 * left),
        ).after(max(1.0, wait - left) if self.is_busy else STALE)

    def _may_probe(self, kind: Hashable, request: object) -> bool:
        """Return whether a request may be the probe of its kind, which it is from now on, unless it is None.

        There is one at a time, and none while a batch runs that will tell the same.
        """
        with self._ready:
            if kind in self._probes and self._is_open(self._probes[kind]):
                return self._probes[kind] is request
            if any(one.kind == kind and one.works[0].usual for one in self._running):
                return False
            if request is not None:
                self._probes[kind] = request
            return True

    def _is_open(self, request: object) -> bool:
        """Return whether a piece of a request waits or is searched."""
        return request in self._pieces or any(work.request is request for one in self._running for work in one.works)

    def _forget_probes(self) -> None:
        self._probes = {kind: request for kind, request in self._probes.items() if self._is_open(request)}

    # ---- The worker -------------------------------------------------------------------------------------------------

    def _work(self, number: int) -> None:
        try:
            while self._search_next():
                pass
        except BaseException as error:  # such as SystemExit, or a fault of the batcher's own
            self._replace(number, error)

    def _search_next(self) -> bool:
        """Search the next batch, and return whether there may be more."""
        assert self._loop is not None
        with self._ready:
            self._ready.wait_for(lambda: self._closed or self._may_take())
            if self._closed:
                return False
            works, late_ones = self._take()
            if works:
                outside = self._outside(works[0].group)
                load = sum((one.load for one in works), Load())
                self._count_costs()
                owners, kind = {one.owner for one in works}, self.costs.kind(load)
                batch = _Batch(load, kind, works, owners, self._seen, outside, ahead=outside)
                self._running.append(batch)
                self._at_work[threading.get_ident()] = batch
                if self._queues:
                    self._ready.notify()
        if late_ones:
            self._loop.call_soon_threadsafe(_settle_all, late_ones, [late()] * len(late_ones))
        if works:
            self._search(works, batch)
        return True

    def _search(self, works: list[Work], batch: _Batch) -> None:
        began = time.monotonic()
        try:
            with sharing(lambda: max(1, self._searching())):
                outcomes = list(self._run(works[0].group, [one.payload for one in works]))
            if len(outcomes) != len(works):
                raise RuntimeError(f"{len(works)} payloads have {len(outcomes)} outcomes")
        except Exception as error:  # the worker must survive any error of a search
            outcomes = [contained(error)] * len(works)
        self._end(batch, began, outcomes)

    def _end(self, batch: _Batch, began: float, outcomes: list[Any]) -> None:
        """Remove a batch from those that run, and give its work the outcomes."""
        assert self._loop is not None
        works, took = batch.works, time.monotonic() - began
        for one in works:
            one.started, one.took, one.batch = began, took, batch.load.queries
        with self._ready:
            self._count_costs()
            self._running.remove(batch)
            del self._at_work[threading.get_ident()]
            if batch.outside:
                self._gives_way = batch.lent or any(one.waits for one in self._running)
            if works[0].usual and not all(isinstance(one, Exception) for one in outcomes):
                whole = batch.own if batch.lent else None
                self.costs.add(batch.load, batch.thread, whole, began=batch.began, ended=self._seen)
            self._charge(works, batch.own)
            self._forget_probes()
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._finish, works, outcomes, took)

    def _replace(self, number: int, error: BaseException) -> None:
        """Let another thread take the place of this one, whose batch fails."""
        log.critical("the thread %s died and is replaced", threading.current_thread().name, exc_info=error)
        self._died()
        batch = self._at_work.get(threading.get_ident())
        if batch is not None:
            self._end(batch, time.monotonic(), [contained(error)] * len(batch.works))
        with self._ready:
            if self._closed:
                return
            self._threads[number] = self._thread(number)
            self._threads[number].start()

    def _finish(self, works: list[Work], outcomes: list[Any], took: float) -> None:
        if self._observe is not None:
            self._observe(works, took)
        _settle_all(works, outcomes)

    def _take(self) -> tuple[list[Work], list[Work]]:
        """Remove the work of the next batch from the queue, and the work whose deadline has passed; return both.

        The owner for whom the fewest seconds were spent comes first, with its oldest work; the rest of the batch is
        work of the same group, in the same order of owners. A batch that makes parts of an index makes few.
        """
        works: list[Work] = []
        too_late: list[Work] = []
        now, room, group, enough = time.monotonic(), self.limit, None, self._enough()
        parts, barred = self.costs.most_parts, set[str]()
        while self.limit - room < enough:
            owners = [
                one
                for one, groups in self._queues.items()
                if (self._allowed(one) if group is None else group in groups and one not in barred)
            ]
            fitting = [(self._turns[owner], at, owner) for at, owner in enumerate(owners)]
            taken = None
            for _, _, owner in sorted(fitting):
                groups = self._queues[owner]
                chosen = (
                    group if group is not None else min(self._allowed(owner), key=lambda one: groups[one][0].queued)
                )
                taken = self._next(owner, chosen, room, parts if works else None, now, too_late)
                if taken is not None:
                    break
            if taken is None:
                if owners and group is None and any(map(self._allowed, self._queues)):
                    continue  # all that was seen was late; more is queued
                break
            if not works and self._outside(taken.group):
                barred = {one for one in self._queues if self._has_its_call(one)}
            works.append(taken)
            room, group, parts = room - taken.size, taken.group, parts - taken.load.parts
        return works, too_late

    def _allowed(self, owner: str) -> list[Hashable]:
        """Return the groups of an owner's queued work of which a batch may be taken.

        At most as many batches as workers may call something outside. While other owners send work too, one worker
        makes no parts of an index, which take longer than most batches.
        """
        full = sum(one.outside for one in self._running) >= self._workers or self._has_its_call(owner)
        making = sum(one.load.parts > 0 and not one.waits for one in self._running)
        made = making > 0 and making + 1 >= self._workers and self._others_send(owner)
        return [
            group
            for group, works in self._queues[owner].items()
            if not (full and self._outside(group)) and not (made and works[0].load.parts)
        ]

    def _has_its_call(self, owner: str) -> bool:
        """Return whether a batch of an owner is at its call outside, or before it, while others send such work too."""
        calls = (one for one in self._running if one.outside and (one.ahead or one.at != "search"))
        return any(owner in one.owners for one in calls) and self._others_send(owner, outside=True)

    def _others_send(self, owner: str, *, outside: bool = False) -> bool:
        """Return whether another owner has sent work of late, or such work; owners that have not are forgotten."""
        since = time.monotonic() - RECENT
        for sent in [sent for sent, came in self._came.items() if came < since]:
            del self._came[sent]
        return any(one != owner and calls >= outside for one, calls in self._came)

    def _enough(self) -> int:
        """Return the number of queries from which on a batch takes no further work."""
        most = min(self.queries, self._gather)
        return 1 << (most.bit_length() - 1) if most > LANES else self._gather

    def _next(
        self, owner: str, group: Hashable, room: int, parts: int | None, now: float, too_late: list[Work]
    ) -> Work | None:
        """Take the first work of a queue that is not late, if it fits; ``parts`` are left for it, None for any."""
        queue = self._queues[owner][group]
        taken = None
        while queue and taken is None:
            if queue[0].deadline <= now:
                too_late.append(queue[0])
            elif queue[0].size > room or (parts is not None and queue[0].load.parts > parts):
                break
            else:
                taken = queue[0]
                self._served = max(self._served, self._turns[owner])
                taken.charged = self.costs.share(taken.load)  # until it is known
                self._turns[owner] += taken.charged
                self._serving[owner] = self._serving.get(owner, 0) + 1
            self._forget(queue.popleft())
        self._prune(owner, group)
        return taken

    def _charge(self, works: list[Work], seconds: float) -> None:
        """Charge the owners of a batch's work its own seconds, by what each caused, in place of the estimates."""
        shares = [self.costs.share(one.load) for one in works]
        for one, share in zip(works, shares, strict=True):
            self._turns[one.owner] += seconds * share / sum(shares) - one.charged
            self._serving[one.owner] -= 1
            if not self._serving[one.owner]:
                del self._serving[one.owner]
                self._rest(one.owner)

    def _prune(self, owner: str, group: Hashable) -> None:
        """Remove an empty queue, and an owner without queues."""
        groups = self._queues[owner]
        if not groups[group]:
            del groups[group]
        if not groups:
            del self._queues[owner], self._waiting[owner]
            self._rest(owner)

    def _rest(self, owner: str) -> None:
        """Forget the turns of an owner that neither waits nor is served."""
        if owner not in self._queues and owner not in self._serving:
            self._turns.pop(owner, None)

    def _forget(self, work: Work) -> None:
        work.waits = False
        self._load -= work.load
        self._alone -= work.alone
        self._waiting[work.owner] -= work.load
        self._pieces[work.request] -= 1
        if not self._pieces[work.request]:
            del self._pieces[work.request]
        if not self._pieces:
            self._alone = 0.0  # without the errors of sums


def load_of(size: int, parts: int | None, outside: bool = False) -> Load:
    """Return the amount of work of queries without filters, or with filters for which parts have to be made.

    ``outside``: whether their batch may call something outside.
    """
    if outside:
        return Load(outside=size, parts=parts or 0, outside_parts=parts or 0)
    return Load(plain=size) if parts is None else Load(filtered=size, parts=parts)


def late() -> RefusalError:
    """Return the 504 refusal of a request whose deadline has passed."""
    return RefusalError(
        "timeout",
        "timeout_ms",
        "{field} passed before the request was answered; give a larger one, or send the request later",
    )


def stopping(status: str = "stopping") -> RefusalError:
    """Return the 503 refusal of a server that is starting or stopping."""
    return RefusalError("unavailable", None, "the server is {status}; send the request again", status=status).after(1)


def retry_after(seconds: float) -> str:
    """Return the value of the header Retry-After: whole seconds, at least 1.

    Examples
    --------
    >>> retry_after(0.2), retry_after(2.1)
    ('1', '3')
    """
    return str(max(1, math.ceil(seconds)))


def _settle_all(works: list[Work], outcomes: Sequence[Any]) -> None:
    for one, outcome in zip(works, outcomes, strict=True):
        _settle(one, outcome)


def _settle(work: Work, outcome: Any) -> None:
    if work.future.done():
        return  # the client left, or the deadline passed during the batch
    if isinstance(outcome, Exception):
        work.future.set_exception(outcome)
    else:
        work.future.set_result(outcome)
