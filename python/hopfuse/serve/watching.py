"""Notice clients that leave before they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

#: Seconds after which a task starts to watch the client of a request.
PATIENCE = 0.1


class Watching:
    """Watches whether a client leaves, only after a while: most requests are answered before, and a task costs time.

    Parameters
    ----------
    watch : callable
        A coroutine function that returns when the client has left.
    left : callable
        Called then.
    """

    def __init__(self, watch: Callable[[], Awaitable[Any]], left: Callable[[], None]) -> None:
        self._watch, self._left = watch, left
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._start)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self._watch()
        self._left()

    def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None  # the exception of its end refers to this object: the request would be in a cycle
