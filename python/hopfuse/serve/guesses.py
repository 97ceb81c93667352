"""Slow down clients that send wrong keys, without a delay for those that send right ones."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import Request

from .config import Limits
from .errors import RefusalError

#: Seconds for which wrong keys of an address count, and by which the refusal of each further one is delayed.
WINDOW, DELAY = 60.0, 1.0
#: Addresses that are remembered, and refusals that are delayed at a time.
ADDRESSES, DELAYED = 4096, 64
#: Bits of an IPv6 address that tell clients apart; a client chooses the others itself.
CLIENT_BITS = 64


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
        if not self._is_over("" if request.client is None else request.client.host):
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

    def _is_over(self, host: str) -> bool:
        address, now = client_of(host), self._clock()
        count, end = self._counts.get(address, (0, 0.0))
        if now >= end:
            self._counts.pop(address, None)  # it becomes the newest
            count, end = 0, now + WINDOW
        self._counts[address] = (count + 1, end)
        while len(self._counts) > ADDRESSES:
            self._counts.popitem(last=False)
        return count >= self._limits.wrong_keys


def client_of(host: str) -> str:
    """Return the address by which a client is known: its own, or its network if it is one of IPv6.

    Examples
    --------
    >>> client_of("192.0.2.7"), client_of("2001:db8:0:1::7"), client_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:0:1::', '192.0.2.7')
    """
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), CLIENT_BITS), strict=False).network_address)
