"""Retrievers for requests that choose a recipe or its options, made when first needed and kept in a cache."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

import msgspec

from ..errors import HopfuseError
from ..retriever import Retriever
from .config import ServeConfig
from .errors import RefusalError, in_request
from .snapshots import Snapshot


class RetrieverCache:
    """The most recently used retrievers.

    Parameters
    ----------
    config : ServeConfig
    maker : Executor
        Where they are made.
    """

    def __init__(self, config: ServeConfig, maker: Executor) -> None:
        self._config, self._maker = config, maker
        self._made: OrderedDict[tuple[Snapshot, str, bytes], asyncio.Future[Retriever]] = OrderedDict()

    async def of(self, snapshot: Snapshot, name: str | None, options: Mapping[str, Any], deadline: float) -> Retriever:
        """Return the retriever of a request, by default the snapshot's own.

        Raises
        ------
        HopfuseError
            The recipe has no such option, or the index does not support it.
        RefusalError
            403: requests may not choose. 504: it is not made before the deadline (:func:`time.monotonic`); making it
            continues.
        """
        wanted = name or snapshot.retriever.recipe.name
        if wanted in snapshot.retrievers and not options:
            return snapshot.retrievers[wanted]
        if not self._config.request_options:
            field, has = ("options", "fixed ones") if options else ("recipe", f"only {', '.join(snapshot.retrievers)}")
            raise RefusalError(
                "forbidden", field, "{field} is given, and this server has {allowed}; leave it out", allowed=has
            )
        key = (snapshot, wanted, msgspec.json.encode(options, order="deterministic"))
        made = self._made.get(key)
        if made is None:
            make = partial(_variant, snapshot.retriever, wanted, options)
            made = asyncio.get_running_loop().run_in_executor(self._maker, make)
            self._made[key] = made
            while len(self._made) > self._config.limits.option_sets:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        try:
            return await asyncio.wait_for(asyncio.shield(made), deadline - time.monotonic())
        except TimeoutError:
            raise RefusalError(
                "timeout",
                "timeout_ms",
                "{field} passed while {recipe} was made for its first request; send the request again, or list the "
                "recipe in recipes = [...] of the index, so that it is made before the server is ready",
                recipe=wanted,
            ) from None
        except HopfuseError as error:
            self._made.pop(key, None)
            if error.field in (None, "index", "recipe") and error.field not in options:
                raise error.at(field=error.field or "recipe") from None
            if error.field == "graph":  # that of the index, which this recipe does not walk
                raise error.about("index") from None
            raise in_request(error, "options") from None

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
