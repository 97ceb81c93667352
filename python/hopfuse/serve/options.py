"""The recipes of requests that choose one, or its options: made aside, and kept while they are asked for."""

from __future__ import annotations

import asyncio
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

    async def of(self, snapshot: Snapshot, name: str | None, options: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a request, by default the snapshot's own.

        Raises
        ------
        RefusalError
            400: what the recipe, or the index, does not have. 403: this server has one recipe.
        """
        if name in (None, snapshot.default_recipe) and not options:
            return snapshot.recipe
        if not self._config.request_options:
            field = "recipe" if not options else "options"
            raise RefusalError(
                403, "forbidden", f"{field} is given, and this server has one recipe; leave it out", field=field
            )
        wanted = name or snapshot.default_recipe
        key = (snapshot, wanted, msgspec.json.encode(options, order="deterministic"))
        made = self._made.get(key)
        if made is None:
            made = asyncio.get_running_loop().run_in_executor(self._maker, snapshot.make, wanted, options)
            self._made[key] = made
            while len(self._made) > self._config.limits.option_sets:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        try:
            return await asyncio.shield(made)
        except HopfuseError as error:
            self._made.pop(key, None)
            field = "options" if options else "recipe"
            raise RefusalError(400, "invalid", f"{field}: {error}", field=field) from None

    def forget(self, index: str) -> None:
        """Forget the recipes over an index: there is a later state of it."""
        for key in [key for key in self._made if key[0].name == index]:
            del self._made[key]
