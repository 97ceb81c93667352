"""Retrievers for requests that choose a recipe or its options, made when first needed and kept in a cache."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ..errors import HopfuseError
from ..retriever import Retriever
from .config import ServeConfig
from .desk import Desk
from .errors import RefusalError, in_request
from .searches import Search
from .snapshots import Snapshot


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
        self._made: OrderedDict[tuple[Snapshot, str, bytes], _Make] = OrderedDict()
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

    def _begin(self, key: tuple[Snapshot, str, bytes], options: Mapping[str, Any], owner: str) -> None:
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

    def _ended(self, key: tuple[Snapshot, str, bytes], made: _Make, task: asyncio.Task[Retriever]) -> None:
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
