"""Slow down clients that send wrong keys, without a delay for those that send right ones."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import Request

from .admission import address_of
from .config import Limits
from .errors import RefusalError

#: Seconds for which wrong keys of an address count, and by which the refusal of each further one is delayed.
WINDOW, DELAY = 60.0, 1.0
#: Addresses that are remembered, and refusals that are delayed at a time.
ADDRESSES, DELAYED = 4096, 64


class Guesses:
    """The wrong keys of clients.

    After ``limits.wrong_keys`` of an address in a minute, the refusal of each further one is sent a second later. While
    many refusals wait, others are 429.

    Parameters
    ----------
    limits : Limits
    count : callable, optional
        Called for each delayed refusal.
    clock : callable, optional
        Returns seconds.

    Examples
    --------
    >>> import asyncio
    >>> from starlette.requests import Request
    >>> from hopfuse.serve import Guesses, Limits
    >>> guesses = Guesses(Limits(wrong_keys=1))
    >>> asyncio.run(guesses.delay(Request({"type": "http", "client": ("192.0.2.7", 5000)})))
    >>> len(guesses)
    1
    """

    def __init__(
        self, limits: Limits, count: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._count, self._clock = limits, count, clock
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()  # and the end of the window, the oldest first
        self._delayed = 0

    def __len__(self) -> int:
        """Return the number of remembered addresses."""
        return len(self._counts)

    async def delay(self, request: Request) -> None:
        """Count a wrong key, and wait before it is refused if the client has sent many.

        Raises
        ------
        RefusalError
            429: many refusals wait.
        """
        if not self._is_over(address_of(request.client) or ""):
            return
        self._count()
        if self._delayed >= DELAYED:
            raise RefusalError(
                "overloaded", None, "many requests with wrong keys are being refused; send the request again later"
            ).after(DELAY)
        self._delayed += 1
        try:
            await asyncio.sleep(DELAY)
        finally:
            self._delayed -= 1

    def _is_over(self, address: str) -> bool:
        now = self._clock()
        count, end = self._counts.get(address, (0, 0.0))
        if now >= end:
            self._counts.pop(address, None)  # it becomes the newest
            count, end = 0, now + WINDOW
        self._counts[address] = (count + 1, end)
        while len(self._counts) > ADDRESSES:
            self._counts.popitem(last=False)
        return count >= self._limits.wrong_keys
