"""Gather requests that wait into batches for one worker thread: "take what waits" whenever the worker is free.

There is no timer: a request that finds the worker idle is searched at once, alone, and while a batch runs the next one
gathers. The queue is bounded in requests and bytes. A request whose deadline cannot be met is refused when it arrives;
one whose deadline passes while it waits is never searched.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import RefusalError

#: Weight of the newest batch in the mean time of batches.
NEWEST = 0.2


@dataclass(eq=False, slots=True)
class Work:
    """The work of one request, or a part of it that fits into a batch.

    Attributes
    ----------
    group : hashable
        Only work of one group shares a batch.
    size, nbytes : int
        Queries, and bytes of the body.
    payload
        For ``run``.
    owner : str
        Whose turn it takes: the name of a key.
    deadline : float
        Of :func:`time.monotonic`.
    future : asyncio.Future
        The outcome, or a :class:`RefusalError`.
    usual : bool
        Whether its time says how long other batches take.
    started, took : float
        When its batch began, and the seconds that it took; ``batch``, the queries in it.
    """

    group: Hashable
    size: int
    nbytes: int
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


class BatchTimes:
    """Mean times of batches by their size, in powers of two.

    Examples
    --------
    >>> times = BatchTimes(32)
    >>> times.add(1, 0.002)
    >>> times.add(32, 0.016)
    >>> times.of(1), times.of(32), times.of(64)
    (0.002, 0.016, 0.032)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._means: dict[int, float] = {}

    def add(self, size: int, seconds: float) -> None:
        """Take a batch into the means."""
        key = size.bit_length()
        known = self._means.get(key)
        self._means[key] = seconds if known is None else known + NEWEST * (seconds - known)

    def of(self, queries: int) -> float:
        """Return the seconds that so many queries take, in batches of at most the limit; 0 where nothing is known."""
        whole, rest = divmod(queries, self._limit)
        return whole * self._one(self._limit) + (self._one(rest) if rest else 0.0)

    def _one(self, size: int) -> float:
        """Return what a size takes; one that was never seen takes what the nearest larger one does, else its share."""
        key = size.bit_length()
        if key in self._means:
            return self._means[key]
        larger = [known for known in self._means if known >= key]
        if larger:
            return self._means[min(larger)]
        smaller = max(self._means, default=None)
        return 0.0 if smaller is None else self._means[smaller] * size / 2 ** (smaller - 1)


class Batcher:
    """The queue and its worker.

    Parameters
    ----------
    run : callable
        ``run(group, payloads)``, on the worker thread: an outcome for each payload, or a :class:`RefusalError`.
    limit : int
        Queries in a batch.
    max_requests, max_bytes : int
        Of the queue.
    observe : callable, optional
        ``observe(works, seconds)`` after each batch, on the event loop.
    """

    def __init__(
        self,
        run: Callable[[Any, list[Any]], Sequence[Any]],
        *,
        limit: int,
        max_requests: int,
        max_bytes: int,
        observe: Callable[[list[Work], float], None] | None = None,
    ) -> None:
        self._run, self.limit, self._observe = run, limit, observe
        self._max_requests, self._max_bytes = max_requests, max_bytes
        self.times = BatchTimes(limit)
        self._ready = threading.Condition()
        self._queues: dict[str, dict[Hashable, deque[Work]]] = {}  # by owner and group; no empty ones
        self._turns: dict[str, float] = {}  # queries that each waiting owner was served
        self._served = 0.0  # by whom it is least
        self._waiting: dict[str, int] = {}  # queries
        self.requests = self.nbytes = self.queries = 0
        self._running: tuple[float, int] | None = None
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="hopfuse-kernel", daemon=True)

    def start(self) -> None:
        """Start the worker; its outcomes go to the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop the worker after the batch that it runs; work that still waits is refused."""
        with self._ready:
            self._closed = True
            left = [one for groups in self._queues.values() for works in groups.values() for one in works]
            for one in left:
                self._forget(one)
            self._queues.clear()
            self._ready.notify()
        for one in left:
            _settle(one, RefusalError(503, "stopping", "the server is stopping; send the request again", retry_after=1))
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def submit(
        self,
        group: Hashable,
        payload: Any,
        *,
        size: int,
        nbytes: int,
        owner: str,
        deadline: float,
        usual: bool = True,
    ) -> Work:
        """Queue work for the worker and return it; its ``future`` has the outcome.

        Raises
        ------
        RefusalError
            429: the queue is full, or the deadline cannot be met. 504: it has passed.
        """
        work = Work(group, size, nbytes, payload, owner, deadline, asyncio.get_running_loop().create_future(), usual)
        with self._ready:
            self._check_room(work)
            queue = self._queues.setdefault(owner, {}).setdefault(group, deque())
            queue.append(work)
            work.waits = True
            self.requests, self.nbytes, self.queries = self.requests + 1, self.nbytes + nbytes, self.queries + size
            if owner not in self._turns:
                self._turns[owner] = self._served
            self._waiting[owner] = self._waiting.get(owner, 0) + size
            self._ready.notify()
        return work

    def withdraw(self, work: Work, refusal: RefusalError) -> None:
        """Take work out of the queue whose client has left or whose deadline has passed; what runs is finished."""
        with self._ready:
            if work.waits:
                queue = self._queues[work.owner][work.group]
                queue.remove(work)
                self._forget(work)
                self._prune(work.owner, work.group)
        _settle(work, refusal)

    def wait_of(self, owner: str, size: int) -> float:
        """Return the seconds after which so many more queries of an owner would be answered, as batches now take."""
        ahead = self.queries
        if len(self._turns) > (owner in self._turns):  # others wait: each has its turn
            owners = len(self._turns) + (owner not in self._turns)
            ahead = min(ahead, owners * self._waiting.get(owner, 0) + (owners - 1) * size)
        return self._left_of_running() + self.times.of(ahead + size)

    def _left_of_running(self) -> float:
        if self._running is None:
            return 0.0
        began, size = self._running
        return max(0.0, self.times.of(size) - (time.monotonic() - began))

    def _check_room(self, work: Work) -> None:
        if self._closed:
            raise RefusalError(503, "stopping", "the server is stopping; send the request again", retry_after=1)
        left = work.deadline - time.monotonic()
        if left <= 0:
            raise late()
        wait = self.wait_of(work.owner, work.size)
        if self.requests >= self._max_requests or self.nbytes + work.nbytes > self._max_bytes:
            raise RefusalError(
                429,
                "overloaded",
                f"the queue is full ({self.requests} requests, {self.nbytes} bytes); send the request again after the "
                "time of Retry-After",
                retry_after=max(1.0, wait),
            )
        if wait > left:
            raise RefusalError(
                429,
                "overloaded",
                f"the request would be answered in about {1000 * wait:.0f} ms, and timeout_ms leaves "
                f"{1000 * left:.0f}; send it again after the time of Retry-After, or with a larger timeout_ms",
                field="timeout_ms",
                retry_after=max(1.0, wait - left),
            )

    # ---- The worker -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        assert self._loop is not None
        while True:
            with self._ready:
                while not self._closed and not self._queues:
                    self._ready.wait()
                if self._closed:
                    return
                works, late_ones = self._take()
                if works:
                    self._running = (time.monotonic(), sum(one.size for one in works))
            if late_ones:
                self._loop.call_soon_threadsafe(_settle_all, late_ones, [late()] * len(late_ones))
            if works:
                self._batch(works)

    def _batch(self, works: list[Work]) -> None:
        assert self._loop is not None
        began, size = time.monotonic(), sum(one.size for one in works)
        try:
            outcomes = list(self._run(works[0].group, [one.payload for one in works]))
        except Exception as error:  # the worker outlives whatever a search raises; the loop reports it
            outcomes = [error] * len(works)
        took = time.monotonic() - began
        for one in works:
            one.started, one.took, one.batch = began, took, size
        with self._ready:
            self._running = None
            if works[0].usual:
                self.times.add(size, took)
        self._loop.call_soon_threadsafe(self._finish, works, outcomes, took)

    def _finish(self, works: list[Work], outcomes: list[Any], took: float) -> None:
        if self._observe is not None:
            self._observe(works, took)
        _settle_all(works, outcomes)

    def _take(self) -> tuple[list[Work], list[Work]]:
        """Take the work of the next batch, and what is too late for any.

        The owner who was served least comes first, with what waited longest; others of its group fill the batch, in
        the same order of turns.
        """
        works: list[Work] = []
        too_late: list[Work] = []
        now, room, group = time.monotonic(), self.limit, None
        while room > 0:
            owners = [owner for owner in self._queues if group is None or group in self._queues[owner]]
            fitting = [(self._turns[owner], at, owner) for at, owner in enumerate(owners)]
            taken = None
            for _, _, owner in sorted(fitting):
                groups = self._queues[owner]
                chosen = group if group is not None else min(groups, key=lambda one: groups[one][0].queued)
                taken = self._next(owner, chosen, room, now, too_late)
                if taken is not None:
                    break
            if taken is None:
                if owners and group is None and self._queues:
                    continue  # all that was looked at was too late; others wait
                break
            works.append(taken)
            room, group = room - taken.size, taken.group
        return works, too_late

    def _next(self, owner: str, group: Hashable, room: int, now: float, too_late: list[Work]) -> Work | None:
        """Take the first of a queue that is in time, if it fits."""
        queue = self._queues[owner][group]
        taken = None
        while queue and taken is None:
            if queue[0].deadline <= now:
                too_late.append(queue[0])
            elif queue[0].size > room:
                break
            else:
                taken = queue[0]
                self._served = max(self._served, self._turns[owner])
                self._turns[owner] += taken.size
            self._forget(queue.popleft())
        self._prune(owner, group)
        return taken

    def _prune(self, owner: str, group: Hashable) -> None:
        """Leave no empty queue, and no owner without one."""
        groups = self._queues[owner]
        if not groups[group]:
            del groups[group]
        if not groups:
            del self._queues[owner], self._turns[owner], self._waiting[owner]

    def _forget(self, work: Work) -> None:
        work.waits = False
        self.requests, self.nbytes = self.requests - 1, self.nbytes - work.nbytes
        self.queries -= work.size
        self._waiting[work.owner] -= work.size


def late() -> RefusalError:
    """Return the refusal of a request whose deadline has passed, 504."""
    return RefusalError(
        504,
        "timeout",
        "timeout_ms passed before the request was answered; give more, or send it later",
        field="timeout_ms",
    )


def retry_after(seconds: float) -> str:
    """Return the header's value: whole seconds, at least 1.

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
        return  # its client has left, or its deadline passed while the kernel ran
    if isinstance(outcome, Exception):
        work.future.set_exception(outcome)
    else:
        work.future.set_result(outcome)
