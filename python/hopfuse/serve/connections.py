"""Close the connections of clients that send or read too slowly, and refuse too many connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .config import Limits
from .errors import RefusalError
from .http import refused

#: Requests of one connection that may wait for their turn before more of it is read.
PIPELINED = 16
#: Seconds for which idle connections stay open when the server stops, since their next request may be on its way.
STOP_SECONDS = 0.5


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with further limits.

    A connection is closed if its headers do not arrive within ``header_seconds``, if its client reads nothing of an
    answer for ``idle_seconds``, or still sends a body ``body_seconds`` after the answer. While ``PIPELINED`` requests
    of a connection wait, no more is read from it. When the client leaves, the request being answered is notified. When
    the server stops, each connection is closed after its next answer, or after ``STOP_SECONDS`` without a request. If
    more than ``connections`` are open, requests on new ones are answered 503.
    """

    overloaded = refused(
        RefusalError(
            "unavailable",
            None,
            "the server has {most} open connections, the most that it takes; send the request again",
            most=limits.connections,
        ).after(1)
    )
    overloaded.headers["Connection"] = "close"

    class TimedProtocol(HttpToolsProtocol):
        _headers: asyncio.TimerHandle | None = None
        _reading: asyncio.TimerHandle | None = None
        _rest: asyncio.TimerHandle | None = None
        _begun = _stopping = False
        _answered: RequestResponseCycle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._own_app = self.app
            self.flow = _Flow(transport, self.pipeline)
            self._headers = self.loop.call_later(limits.header_seconds, self._abort)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._begun and self._headers is None:  # most headers arrive at once and need no timer
                self._headers = self.loop.call_later(limits.header_seconds, self._abort)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._begun = True
            full = len(self.connections) > limits.connections or len(self.tasks) >= limits.connections
            self.app = overloaded if full else self._own_app  # answers this request

        def on_headers_complete(self) -> None:
            self._begun = False
            self._headers = _cancelled(self._headers)
            super().on_headers_complete()
            if self.scope["method"] != "HEAD":  # whose answer has no body, so nothing would send its head
                joined: Any = JoinedTransport(self.transport)
                self.cycle.transport = joined
            if self._stopping:
                self.cycle.keep_alive = False
            if not self.pipeline:
                self._answered = self.cycle

        def on_response_complete(self) -> None:
            if self.pipeline:
                self._answered = self.pipeline[-1][0]
            super().on_response_complete()
            if self.cycle.response_complete and self.cycle.more_body:  # answered before its body arrived
                self._rest = self.loop.call_later(limits.body_seconds, self._abort)

        def on_message_complete(self) -> None:
            self._rest = _cancelled(self._rest)
            super().on_message_complete()

        def shutdown(self) -> None:
            self._stopping = True
            if self._is_idle():
                self.loop.call_later(STOP_SECONDS, self._close_idle)
            else:
                super().shutdown()

        def _is_idle(self) -> bool:
            return not self._begun and (self.cycle is None or self.cycle.response_complete)

        def _close_idle(self) -> None:
            if self._is_idle():
                self.transport.close()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait_for_reader()

        def resume_writing(self) -> None:
            self._reading = _cancelled(self._reading)
            super().resume_writing()

        def timeout_keep_alive_handler(self) -> None:
            if self.transport.get_write_buffer_size():  # a close would wait for the client to read
                self._abort()
            super().timeout_keep_alive_handler()

        def connection_lost(self, exc: Exception | None) -> None:
            self._headers, self._reading, self._rest = map(_cancelled, (self._headers, self._reading, self._rest))
            super().connection_lost(exc)
            if self._answered is not None:  # uvicorn notifies only the last request
                self._answered.disconnected = True
                self._answered.message_event.set()

        def _wait_for_reader(self, before: int | None = None) -> None:
            left = self.transport.get_write_buffer_size()
            if left == before:
                self._abort()
            else:
                self._reading = self.loop.call_later(limits.idle_seconds, self._wait_for_reader, left)

        def _abort(self) -> None:
            self.transport.abort()

    return TimedProtocol


class JoinedTransport:
    """The transport of an answer, which sends the head together with the first part of the body, by one system call."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._head, self._sent = transport, b"", False
        self.is_closing, self.close = transport.is_closing, transport.close

    def write(self, data: bytes) -> None:
        """Send data, unless it is the head."""
        if self._head:
            data, self._head, self._sent = self._head + data, b"", True
        elif not (self._sent or data.startswith(b"HTTP/1.1 100 ")):  # 100 Continue precedes the head
            self._head = data
            return
        self._transport.write(data)


class _Flow(FlowControl):
    """uvicorn's flow control, except that an answer resumes reading only if few requests wait."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if len(self._waiting) <= PIPELINED:
            super().resume_reading()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer, and return None in its place."""
    if timer is not None:
        timer.cancel()
    return None
