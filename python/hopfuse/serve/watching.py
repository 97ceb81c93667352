"""Notice clients that leave before they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from .errors import gone_away

#: Seconds after which a task starts to watch the client of a request.
PATIENCE = 0.1


class Watching:
    """Cancels what a block waits for when the client leaves; the block then ends with the refusal "gone".

    The client is watched only after a while: most requests are answered before, and a task costs time.

    Parameters
    ----------
    watch : callable
        A coroutine function that returns when the client has left.
    """

    def __init__(self, watch: Callable[[], Awaitable[Any]]) -> None:
        self._watch = watch
        self._left = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch from now on, for the current task."""
        waits = asyncio.current_task()
        assert waits is not None
        self._waits: asyncio.Task[Any] | None = waits
        self._before = waits.cancelling()
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._start)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self._watch()
        if self._waits is not None:
            self._left = True
            self._waits.cancel()

    def end(self, kind: type[BaseException] | None = None) -> None:
        """Stop watching; ``kind`` is the exception by which the block ends.

        Raises
        ------
        RefusalError
            The client has left.
        """
        waits, self._waits = self._waits, None  # with its exception, the request would be in a cycle
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        assert waits is not None
        if self._left and waits.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise gone_away() from None

    def __enter__(self) -> Watching:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind)
