"""Retrievers for requests that choose a recipe or its options, made at a desk when first needed and kept in a cache."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ParamSpec, TypeVar

import msgspec

from ..errors import HopfuseError
from ..retriever import Retriever
from .batcher import stopping
from .config import ServeConfig
from .errors import RefusalError, in_request
from .searches import Search
from .snapshots import IndexSnapshot
from .threads import DaemonThreads


class _Make:
    """A retriever that is being made or is made for an owner; ``dropped`` if nobody waited, and it had not begun."""

    def __init__(self, owner: str, make: Callable[[], Retriever], maker: Desk) -> None:
        self.owner, self.dropped = owner, False
        self._make, self._waiting, self._begun = make, 0, False
        self.task = asyncio.ensure_future(maker.run(owner, self._run))

    def _run(self) -> Retriever:
        self._begun = True
        return self._make()

    async def until(self, deadline: float) -> Retriever:
        """Return the retriever; if nobody waits any longer, and making it has not begun, it is not made.

        Raises
        ------
        TimeoutError
            It is not made before the deadline.
        """
        self._waiting += 1
        try:
            return await asyncio.wait_for(asyncio.shield(self.task), deadline - time.monotonic())
        finally:
            self._waiting -= 1
            if not self._waiting and not self._begun:
                self.dropped = True
                self.task.cancel()


class RetrieverCache:
    """The most recently used retrievers. Those of a key are made one after another, and keys take turns.

    Parameters
    ----------
    config : ServeConfig
    maker : Desk
        Where they are made.
    """

    def __init__(self, config: ServeConfig, maker: Desk) -> None:
        self._config, self._maker = config, maker
        self._made: OrderedDict[tuple[IndexSnapshot, str, bytes], _Make] = OrderedDict()
        self._pending = Counter[str]()

    async def of(self, search: Search, deadline: float) -> Retriever:
        """Return the retriever of a request, by default the snapshot's own.

        Raises
        ------
        HopfuseError
            The recipe has no such option, or the index does not support it.
        RefusalError
            403: requests may not choose. 429: too many of the key are being made. 504: it is not made before the
            deadline (:func:`time.monotonic`); making it continues if it has begun.
        """
        snapshot, options = search.snapshot, search.options
        wanted = search.recipe or snapshot.retriever.recipe.name
        if wanted in snapshot.retrievers and not options:
            return snapshot.retrievers[wanted]
        if not self._config.request_options:
            field, has = ("options", "fixed ones") if options else ("recipe", f"only {', '.join(snapshot.retrievers)}")
            raise RefusalError(
                "forbidden", field, "{field} is given, and this server has {allowed}; leave it out", allowed=has
            )
        key = (snapshot, wanted, msgspec.json.encode(options, order="deterministic"))
        if key not in self._made or self._made[key].dropped:
            self._begin(key, options, search.owner)
        self._made.move_to_end(key)
        try:
            return await self._made[key].until(deadline)
        except TimeoutError:
            raise RefusalError(
                "timeout",
                "timeout_ms",
                "{field} passed while {recipe} was made for its first request; send the request again, or list the "
                "recipe in recipes = [...] of the index, so that it is made before the server is ready",
                recipe=wanted,
            ) from None
        except RefusalError:
            raise
        except HopfuseError as error:
            if error.field in (None, "index", "recipe") and error.field not in options:
                raise error.at(field=error.field or "recipe") from None
            if error.field == "graph":  # that of the index, which this recipe does not walk
                raise error.about("index") from None
            raise in_request(error, "options") from None

    def _begin(self, key: tuple[IndexSnapshot, str, bytes], options: Mapping[str, Any], owner: str) -> None:
        """Begin to make a retriever. At the limit, the key with most loses the one that was used longest ago."""
        most = self._config.limits.option_sets
        if self._pending[owner] >= most:
            raise RefusalError(
                "overloaded",
                "options" if options else "recipe",
                "{field} is given, and {allowed} retrievers for recipes and options of this client are being made, the "
                "most that may be ({limit} of the server); send the request again after Retry-After",
                allowed=most,
                limit="limits.option_sets",
            ).after(1)
        made = self._made[key] = _Make(owner, partial(_variant, key[0].retriever, key[1], options), self._maker)
        self._pending[owner] += 1
        made.task.add_done_callback(partial(self._ended, key, made))
        while len(self._made) > most:
            owners = Counter(one.owner for one in self._made.values())
            del self._made[next(key for key, one in self._made.items() if owners[one.owner] == max(owners.values()))]

    def _ended(self, key: tuple[IndexSnapshot, str, bytes], made: _Make, task: asyncio.Task[Retriever]) -> None:
        self._pending -= Counter((made.owner,))
        if (task.cancelled() or task.exception()) and self._made.get(key) is made:
            del self._made[key]

    def forget(self, index: str) -> None:
        """Drop the retrievers of an index, which has a later state."""
        for key in [key for key in self._made if key[0].name == index]:
            del self._made[key]


def _variant(retriever: Retriever, recipe: str, options: Mapping[str, Any]) -> Retriever:
    """Return a variant that has indexed the names, which no request then does on the event loop."""
    made = retriever.variant(recipe, config=options)
    with contextlib.suppress(HopfuseError):
        made.check_question("text")
    return made


#: Threads. The interpreter runs one at a time; the second one works while the first waits for memory or NumPy.
_THREADS = 2

_P = ParamSpec("_P")
_R = TypeVar("_R")


# ---- The desk --------------------------------------------------------------------------------------------------------


class Desk:
    """The threads. Each owner has at most one job on them at a time, so that owners take turns.

    Parameters
    ----------
    threads, name, inside
        As of :class:`DaemonThreads`.

    Examples
    --------
    >>> import asyncio
    >>> async def length(text):
    ...     desk = Desk()
    ...     found = await desk.run("team", len, text)
    ...     desk.close()
    ...     return found
    >>> asyncio.run(length("a river"))
    7
    """

    def __init__(
        self,
        threads: int = _THREADS,
        name: str = "hopfuse-read",
        inside: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._pool, self._closed = DaemonThreads(threads, name, inside), False
        self._turns: dict[str, asyncio.Lock] = {}
        self._jobs: Counter[str] = Counter()  # that run or wait, by owner

    @property
    def threads(self) -> list[threading.Thread]:
        """The threads that were started."""
        return self._pool.threads

    @property
    def jobs(self) -> int:
        """The number of jobs that run or wait."""
        return self._jobs.total()

    async def run(self, owner: str, job: Callable[_P, _R], /, *given: _P.args, **named: _P.kwargs) -> _R:
        """Return what a job returns; a caller that is cancelled leaves a running job to end by itself.

        Raises
        ------
        RefusalError
            503: the desk was closed before the job began.
        """
        turn = self._turns.setdefault(owner, asyncio.Lock())
        self._jobs[owner] += 1
        try:
            await turn.acquire()
        except BaseException:
            self._leave(owner)
            raise
        loop = asyncio.get_running_loop()

        def end() -> None:
            turn.release()
            self._leave(owner)

        def ended(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(end)

        try:
            running = self._pool.submit(job, *given, **named)
        except BaseException:
            end()
            if self._closed:
                raise stopping() from None
            raise
        running.add_done_callback(ended)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if self._closed and running.cancelled():
                raise stopping() from None
            raise

    def _leave(self, owner: str) -> None:
        self._jobs[owner] -= 1
        if not self._jobs[owner]:
            del self._jobs[owner], self._turns[owner]

    def close(self) -> None:
        """Wait for running jobs, and refuse the others."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)
