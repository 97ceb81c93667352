"""The recipes of requests that choose one, or its options: made aside, and kept while they are asked for."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import msgspec

from ..errors import HopfuseError
from ..recipes import Recipe
from .config import ServeConfig
from .errors import RefusalError
from .snapshots import Snapshot


class Recipes:
    """The recipes that were asked for lately.

    Parameters
    ----------
    config : ServeConfig
    maker : Executor
        Where they are made.
    """

    def __init__(self, config: ServeConfig, maker: Executor) -> None:
        self._config, self._maker = config, maker
        self._made: OrderedDict[tuple[Snapshot, str, bytes], asyncio.Future[Recipe]] = OrderedDict()

    async def of(self, snapshot: Snapshot, name: str | None, options: Mapping[str, Any], deadline: float) -> Recipe:
        """Return the recipe of a request, by default the snapshot's own, when it is made.

        Raises
        ------
        RefusalError
            400: what the recipe, or the index, does not have. 403: requests do not choose it. 504: it is not made
            before the deadline, of :func:`time.monotonic`; it is made all the same.
        """
        wanted = name or snapshot.default_recipe
        if wanted in snapshot.recipes and not options:
            return snapshot.recipes[wanted]
        if not self._config.request_options:
            field, has = ("options", "no others") if options else ("recipe", f"only {', '.join(snapshot.recipes)}")
            raise RefusalError(
                403, "forbidden", f"{field} is given, and this server has {has}; leave it out", field=field
            )
        key = (snapshot, wanted, msgspec.json.encode(options, order="deterministic"))
        made = self._made.get(key)
        if made is None:
            made = asyncio.get_running_loop().run_in_executor(self._maker, snapshot.make, wanted, options)
            self._made[key] = made
            while len(self._made) > self._config.limits.option_sets:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        try:
            return await asyncio.wait_for(asyncio.shield(made), deadline - time.monotonic())
        except TimeoutError:
            raise RefusalError(
                504,
                "timeout",
                f"timeout_ms passed while {wanted} was made for its first request; send it again, or have it made "
                "before the server is ready, by recipes = [...] of the index in its configuration",
                field="timeout_ms",
            ) from None
        except HopfuseError as error:
            self._made.pop(key, None)
            field = "options" if options else "recipe"
            raise RefusalError(400, "invalid", f"{field}: {error}", field=field) from None

    def forget(self, index: str) -> None:
        """Forget the recipes over an index: there is a later state of it."""
        for key in [key for key in self._made if key[0].name == index]:
            del self._made[key]
