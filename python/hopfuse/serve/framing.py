"""Where the bytes of a connection belong, and how many of them may be parsed next.

httptools joins the parts of a header that arrive one by one, uvicorn those of a URL, and both keep what they have until
the message ends. So bytes are counted before they are parsed.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from typing import Protocol

from .config import Limits
from .errors import RefusalError

#: The end of a head: a request line and headers. The parser accepts no other line ends.
END = b"\r\n\r\n"
#: Line ends, which the parser skips before a request: the end of a head is looked for behind them.
BLANK = re.compile(rb"[\r\n]*")
#: Bytes of a chunked body that are parsed at a time. Where it ends is known only afterwards, and further requests may
#: follow.
CHUNKED = 256
#: Bytes of data of a chunked body for each byte of what frames it, beyond ``header_bytes``.
DATA_PER_FRAMING = 16


class Framing:
    """The state of a connection: within a head or a body, and how many bytes of it there are.

    Pieces of a connection's data end where a head or a body ends, so that one call of the parser begins at most one
    request, and bytes of a head are counted exactly. Only after a chunked body may a piece have bytes of the next head.

    Parameters
    ----------
    limits : Limits

    Attributes
    ----------
    head : int
        Bytes of the head that has begun, with blank lines before it; 0 between messages.
    in_body : bool
        Whether a head has ended, and its body has not.

    Examples
    --------
    >>> framing, data = Framing(Limits()), b"GET / HTTP/1.1\\r\\n\\r\\nGET /next"
    >>> framing.piece(data, 0)
    18
    >>> framing.piece(1000 * b"\\r\\n" + data, 0)  # before the request
    2000
    """

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.header_bytes
        self.head, self.in_body = 0, False
        self._tail = b""
        self._left = self._data = self._before = self._frames = 0
        self._was_body = self._ended = False
        self._is_blank = True  # no byte of a head has come but line ends

    def piece(self, data: bytes, at: int) -> int:
        """Return the end of the piece of ``data`` that begins at ``at``."""
        self._was_body, self._ended = self.in_body, False
        if self.in_body:
            self._before = self._data
            return min(len(data), at + (self._left if self._left > 0 else CHUNKED))
        most = min(len(data), at + self._limit - self.head)
        if self._is_blank:
            blank = BLANK.match(data, at, most)
            assert blank is not None
            if blank.end() > at:
                return blank.end()
        if self._tail:
            across = (self._tail + data[at : at + 3]).find(END)
            if across >= 0:
                return min(most, at + across + len(END) - len(self._tail))
        found = data.find(END, at, most)
        return most if found < 0 else found + len(END)

    def begin_body(self, length: int | None) -> None:
        """Note that a head has ended, and a body of ``length`` bytes follows; None for one in chunks."""
        self.head, self.in_body, self._tail = 0, True, b""
        self._left, self._data, self._before, self._frames = -1 if length is None else length, 0, 0, 0

    def add_body(self, size: int) -> None:
        """Count parsed bytes of the body."""
        self._left -= size
        self._data += size

    def begin_head(self) -> None:
        """Note that a message has begun."""
        self._is_blank = False
        if self._was_body:  # behind a chunked body, in the same piece
            self.head = 1

    def end_message(self) -> None:
        """Note that the message has ended."""
        self.head, self.in_body, self._tail, self._ended = 0, False, b"", True
        self._is_blank = True

    def count(self, data: bytes, at: int, end: int) -> None:
        """Count a piece that was parsed."""
        if self.in_body:
            if self._was_body and self._left < 0:
                self._frames += end - at - (self._data - self._before)
        elif self._was_body:
            self._tail = data[max(at, end - 3) : end] if self.head else b""
        elif not self._ended:
            self.head += end - at
            self._tail = (self._tail + data[max(at, end - 3) : end])[-3:]

    def refusal(self) -> RefusalError | None:
        """Return the refusal of a message whose head, or what frames its body, is too long."""
        if self.head >= self._limit:
            return RefusalError(
                "head_too_large",
                None,
                "the request's line and headers have more than {allowed} bytes (limits.header_bytes); send a shorter "
                "URL, or fewer and shorter headers",
                allowed=self._limit,
            )
        if self._frames > self._limit + self._data // DATA_PER_FRAMING:
            return RefusalError(
                "too_large",
                None,
                "the body's chunk sizes, extensions and trailers have more than {allowed} bytes (limits.header_bytes) "
                "beyond a {share}th of its data; send larger chunks",
                allowed=self._limit,
                share=DATA_PER_FRAMING,
            )
        return None


# ---- Turns of connections --------------------------------------------------------------------------------------------
# Whatever one client sends, on however many connections, the next piece of another client's is parsed soon: in each
# turn of the event loop ``_PIECES`` pieces are, and connections with more wait in a queue of their address.


#: Pieces (heads, bodies, parts of chunked bodies) that are parsed in one turn of the event loop, of all connections.
_PIECES = 64
#: Pieces of one connection before others have their turn: a head and its body.
OF_ONE = 2


class _WaitingConnection(Protocol):
    """A connection that has more to parse."""

    address: str | None

    def go_on(self) -> None:
        """Parse up to ``OF_ONE`` pieces that :meth:`Turns.take` grants, and wait again if more is left."""


class Turns:
    """Grants pieces, and goes round among the addresses whose connections wait for more."""

    def __init__(self) -> None:
        self._left, self._comes = _PIECES, False
        self._waiting: OrderedDict[str | None, deque[_WaitingConnection]] = OrderedDict()

    def take(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Take one piece of this turn; return False if there is none left."""
        self._call(loop)
        if not self._left:
            return False
        self._left -= 1
        return True

    def wait(self, loop: asyncio.AbstractEventLoop, one: _WaitingConnection) -> None:
        """Call ``one.go_on()`` when it is its turn."""
        self._call(loop)
        self._waiting.setdefault(one.address, deque()).append(one)

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._comes:
            self._comes = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        self._comes, self._left = False, _PIECES
        while self._left and self._waiting:
            address, ones = self._waiting.popitem(last=False)
            one = ones.popleft()
            if ones:
                self._waiting[address] = ones  # behind the others
            one.go_on()
