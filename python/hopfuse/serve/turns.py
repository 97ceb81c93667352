"""Turns of connections at the event loop, which parses little at a time and goes round among clients.

Whatever one client sends, on however many connections, the next piece of another client's is parsed soon: in each turn
of the event loop ``PIECES`` pieces are, and connections with more wait in a queue of their address.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Protocol

#: Pieces (heads, bodies, parts of chunked bodies) that are parsed in one turn of the event loop, of all connections.
PIECES = 64
#: Pieces of one connection before others have their turn: a head and its body.
OF_ONE = 2


class Waiting(Protocol):
    """A connection that has more to parse."""

    address: str | None

    def go_on(self) -> None:
        """Parse up to ``OF_ONE`` pieces that :meth:`Turns.take` grants, and wait again if more is left."""


class Turns:
    """Grants pieces, and goes round among the addresses whose connections wait for more."""

    def __init__(self) -> None:
        self._left, self._comes = PIECES, False
        self._waiting: OrderedDict[str | None, deque[Waiting]] = OrderedDict()

    def take(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Take one piece of this turn; return False if there is none left."""
        self._call(loop)
        if not self._left:
            return False
        self._left -= 1
        return True

    def wait(self, loop: asyncio.AbstractEventLoop, one: Waiting) -> None:
        """Call ``one.go_on()`` when it is its turn."""
        self._call(loop)
        self._waiting.setdefault(one.address, deque()).append(one)

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._comes:
            self._comes = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        self._comes, self._left = False, PIECES
        while self._left and self._waiting:
            address, ones = self._waiting.popitem(last=False)
            one = ones.popleft()
            if ones:
                self._waiting[address] = ones  # behind the others
            one.go_on()
