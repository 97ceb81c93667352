"""Connections: bound what a client can make one hold and do, close slow ones, and refuse too many of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..errors import HopfuseError, InputError
from .admission import CONNECTION, RESERVE_SECONDS, ConnectionGroup, Connections, address_of
from .config import ServeConfig
from .errors import RefusalError, status_of
from .framing import END, OF_ONE, Framing, Turns
from .http import refused
from .logs import FewLines
from .proxies import Proxies

#: Bytes that are read while a request of the connection is answered, which shows that its client is still there.
READ_AHEAD = 65536
#: Seconds for which idle connections stay open when the server stops, since their next request may be on its way.
STOP_SECONDS = 0.5
#: What is read and dropped after the last answer of a connection. If it were closed at once, the system would send a
#: reset for what the client still sends, and that may destroy the answer before it is read.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**20
#: What is read and dropped of a body after an answer, such as 413, which many clients read only after they sent all.
REST_BYTES = 2**24
#: Answered on further connections when there are too many.
HEALTH = frozenset((b"/health/live", b"/health/ready", b"/v2/health/live", b"/v2/health/ready"))


def protocol(
    config: ServeConfig,
    connections: Connections | None = None,
    answered: Callable[[str, int, str], None] = lambda route, status, code: None,
) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with further limits.

    - **Bytes.** A head beyond ``header_bytes`` or ``headers`` is answered 431 before it is parsed further, a body whose
      chunk sizes, extensions and trailers take too much 413, and what is not HTTP 400, after the requests before. The
      connection then ends.
    - **Work.** :class:`Turns` grants what is parsed in a turn of the event loop. While a request is answered, further
      ones of the connection are not parsed, and at most ``READ_AHEAD`` bytes and what the system hands over are read.
    - **Time.** A connection is closed if its headers do not arrive within ``header_seconds``, if its client reads
      nothing of an answer for ``idle_seconds``, or still sends a body ``body_seconds`` or ``REST_BYTES`` after the
      answer.
    - **Number.** Requests on connections beyond a limit of :class:`Connections` are refused, except for ``/health``.
    - **Upgrade** is ignored: the head is parsed anew without it, since the parser takes the body for another protocol.

    When the client leaves, the request being answered is notified. When the server stops, each connection is closed
    after its next answer, or after ``STOP_SECONDS`` without a request.

    Parameters
    ----------
    config : ServeConfig
    connections : Connections, optional
    answered : callable
        ``answered(route, status, code)`` counts a refusal of a connection.
    """
    limits, counted = config.limits, Connections(config) if connections is None else connections
    proxies, turns, few = Proxies(config.proxies), Turns(), FewLines(logging.getLogger("hopfuse.serve"))

    class LimitedProtocol(HttpToolsProtocol):
        flow: _Flow
        _headers: asyncio.TimerHandle | None = None
        _reading: asyncio.TimerHandle | None = None
        _rest: asyncio.TimerHandle | None = None
        _stopping = _over = _cut = _lingers = False
        _answered: RequestResponseCycle | None = None
        _excess: RefusalError | None = None
        _held, _queued = b"", False
        _hosts = _length = _dropped = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.groups: dict[str, ConnectionGroup] = {}
            self._own_app, self._framing, self.flow = self.app, Framing(limits), _Flow(transport)
            trusted = self.client is not None and proxies.trusts(self.client[0])
            self.address = None if trusted else address_of(self.client)  # a proxy has many clients
            self._excess = counted.open(self, self.address)
            seconds = limits.header_seconds if self._excess is None else min(RESERVE_SECONDS, limits.header_seconds)
            self._headers = self.loop.call_later(seconds, self._abort)

        def _renew_parser(self) -> None:
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's; the data is ignored

        # ---- Bytes ---------------------------------------------------------------------------------------------------

        def data_received(self, data: bytes) -> None:
            self._unset_keepalive_if_required()
            if self._over:
                self._drop(len(data))
            elif self._held:
                self._hold(self._held + data)
            else:
                self._parse(data)

        def go_on(self) -> None:
            """Parse what is held."""
            self._queued = False
            if self._held:
                self._unset_keepalive_if_required()
                self._parse(self._held)

        def _parse(self, data: bytes) -> None:
            """Parse data piece by piece, and hold what is left for the next turn, or until a request is answered."""
            self._held = b""
            at, pieces, framing, view = 0, OF_ONE, self._framing, memoryview(data)
            while at < len(data) and not self._over:
                if not pieces or self._is_answering() or not turns.take(self.loop):
                    self._hold(data[at:])
                    return
                end = framing.piece(data, at)
                self._feed(view[at:end])
                framing.count(data, at, end)
                refusal = None if self._over else framing.refusal()
                if refusal is not None:
                    self._refuse(refusal)
                at, pieces = end, pieces - 1
            if self._over:
                self._drop(len(data) - at)
                return
            self.flow.release()
            if framing.head and self._headers is None:  # most headers arrive at once and need no timer
                self._headers = self.loop.call_later(limits.header_seconds, self._abort)

        def _is_answering(self) -> bool:
            """Whether a request is being answered, and what comes next is another."""
            return not (self._framing.in_body or self.cycle is None or self.cycle.response_complete)

        def _hold(self, data: bytes) -> None:
            self._held = data
            if len(data) >= READ_AHEAD:
                self.flow.hold()
            if not (self._queued or self._is_answering()):
                self._queued = True
                turns.wait(self.loop, self)

        def _feed(self, piece: memoryview) -> None:
            """Parse a piece; refuse the message if it is not valid."""
            data: bytes | memoryview = piece
            try:
                while data:
                    try:
                        self.parser.feed_data(data)
                        break
                    except httptools.HttpParserUpgrade as upgrade:
                        data = self._without_upgrade(data[upgrade.args[0] :])
            except httptools.HttpParserError as error:
                if isinstance(error.__context__, RefusalError):
                    self._refuse(error.__context__)
                else:
                    self._refuse(
                        InputError(
                            "syntax", None, "the request is not valid HTTP/1.1: {error}; send a valid one", error=error
                        )
                    )

        def _without_upgrade(self, rest: bytes | memoryview) -> bytes:
            """Return a head without its header Upgrade, and what follows it, for a new parser; refuse CONNECT."""
            method = self.parser.get_method()
            if method == b"CONNECT":
                self._refuse(
                    RefusalError(
                        "method", None, "{given} is not a method of this server; see /openapi.json", given="CONNECT"
                    )
                )
                return b""
            lines = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
            lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
            self._renew_parser()
            return b"\r\n".join(lines) + END + rest

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._framing.begin_head()
            self._hosts = self._length = self._dropped = 0

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._framing.in_body:  # a trailer
                return
            name = name.lower()
            if name == b"host":
                self._hosts += 1
            elif name == b"content-length":
                self._length = int(value)
            elif name == b"transfer-encoding":
                self._length = -1  # the parser accepts no other last coding than chunked
            elif name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
            if len(self.headers) > limits.headers:
                raise RefusalError(
                    "head_too_large",
                    None,
                    "the request has more than {allowed} headers (limits.headers); send fewer",
                    allowed=limits.headers,
                )

        def on_headers_complete(self) -> None:
            if self.parser.should_upgrade():  # it is parsed anew
                return
            self._headers = _cancelled(self._headers)
            refusal = self._refusal()
            self.app = self._own_app if refusal is None else _closing(refusal)  # answers this request
            scope: Any = self.scope
            scope[CONNECTION] = self
            super().on_headers_complete()
            self._framing.begin_body(None if self._length < 0 else self._length)
            counted.busy(self)
            if self.scope["method"] != "HEAD":  # whose answer has no body, so nothing would send its head
                joined: Any = JoinedTransport(self.transport, self._finish)
                self.cycle.transport = joined
            if self._stopping or self._excess is not None:
                self.cycle.keep_alive = False
            if not self.pipeline:
                self._answered = self.cycle

        def _refusal(self) -> HopfuseError | None:
            """Return the refusal of the request whose head has ended, whatever its path and key are."""
            if self._hosts > 1 or (not self._hosts and self.parser.get_http_version() == "1.1"):
                return InputError(
                    "length",
                    "Host",
                    "the request has {given} headers {field}; it must have {allowed}",
                    given=self._hosts,
                    allowed="one",
                )
            full = self._excess is not None or len(self.tasks) >= 2 * limits.connections
            if not full or self.url.partition(b"?")[0] in HEALTH:
                return None
            return self._excess or ConnectionGroup("all", "", limits.connections).refusal()

        def on_body(self, body: bytes) -> None:
            self._framing.add_body(len(body))
            if self.cycle.response_complete:
                self._drop(len(body))
            else:
                super().on_body(body)

        def on_message_complete(self) -> None:
            if self.parser.should_upgrade():
                return
            self._rest = _cancelled(self._rest)
            self._framing.end_message()
            super().on_message_complete()
            if not self.cycle.keep_alive:
                self._over = True

        def _drop(self, size: int) -> None:
            """Count bytes that nobody reads, and close the connection if there are too many."""
            self._dropped += size
            if self._dropped > (LINGER_BYTES if self._over else max(REST_BYTES, limits.body_bytes)):
                self._abort()

        # ---- Answers -------------------------------------------------------------------------------------------------

        def _refuse(self, error: HopfuseError) -> None:
            """Answer the message that is being read by a refusal, after the requests before it, and read no further."""
            if self._cut or self.transport.is_closing():
                return
            client = self.client[0] if self.client else "-"
            few.warning("a request from %s is refused: %s", client, error.sentence(str))
            self._over = self._cut = True
            broken = self.cycle if self._framing.in_body else None
            if broken is not None and broken.response_started:  # nothing can be said about it any more
                broken.keep_alive = False
                if broken.response_complete:
                    self._finish()
                return
            running = self.cycle is not None and not self.cycle.response_complete
            if broken is not None:
                if self.pipeline:
                    self.pipeline.popleft()
                else:
                    broken.disconnected, running = True, False
                    broken.message_event.set()
            self.cycle = self._cycle()
            if running:
                self.flow.hold()
                self.pipeline.appendleft((self.cycle, _closing(error)))
            else:
                self._headers, self._answered = _cancelled(self._headers), self.cycle
                counted.busy(self)
                self._start_asgi_task(self.cycle, _closing(error))

        def _cycle(self) -> RequestResponseCycle:
            """Return the cycle of an answer after which the connection ends."""
            joined: Any = JoinedTransport(self.transport, self._finish)
            scope: Any = {"type": "http", "method": "GET"}
            return RequestResponseCycle(
                scope=scope,
                transport=joined,
                flow=self.flow,
                logger=self.logger,
                access_logger=self.access_logger,
                access_log=False,
                default_headers=self.server_state.default_headers,
                message_event=asyncio.Event(),
                expect_100_continue=False,
                keep_alive=False,
                on_response=self.on_response_complete,
            )

        def _finish(self) -> None:
            """Close the connection after its last answer; read on for a moment if the client still sends."""
            if self._lingers or self.transport.is_closing():
                return
            if not (self._cut or self._framing.in_body or self._framing.head or self._held):
                self.transport.close()
                return
            self._lingers = self._over = True
            self._held, self._dropped = b"", 0
            self.transport.write_eof()
            self.flow.release()
            self.flow.resume_reading()
            _cancelled(self._rest)
            self._rest = self.loop.call_later(LINGER_SECONDS, self._abort)

        def on_response_complete(self) -> None:
            if self._lingers:
                return
            if self.pipeline:
                self._answered = self.pipeline[-1][0]
            super().on_response_complete()
            if self.cycle.response_complete:
                counted.waits(self)
                if not (self._framing.head or self._framing.in_body):
                    self._forget()
            if self._held:
                self._hold(self._held)
            if self.cycle.response_complete and self.cycle.more_body:  # answered before its body arrived
                self._rest = self.loop.call_later(limits.body_seconds, self._abort)

        def _forget(self) -> None:
            """Drop the head of the last request, which would be kept up to four times while the connection waits."""
            self.url, self.headers = b"", []
            self.scope = self.cycle.scope = None  # type: ignore[assignment]

        def identify(self, key: str) -> None:
            counted.identify(self, key)

        # ---- Time ----------------------------------------------------------------------------------------------------

        def shutdown(self) -> None:
            self._stopping = True
            if self._is_idle():
                self.loop.call_later(STOP_SECONDS, self._close_idle)
            else:
                super().shutdown()

        def _is_idle(self) -> bool:
            return not self._framing.head and (self.cycle is None or self.cycle.response_complete)

        def _close_idle(self) -> None:
            if self._is_idle():
                self.transport.close()

        def give_way(self) -> None:
            if self._is_idle() and not self.transport.get_write_buffer_size():
                self.transport.close()
            else:
                self._abort()

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
            counted.close(self)
            self._over, self._held = True, b""
            self._headers, self._reading, self._rest = map(_cancelled, (self._headers, self._reading, self._rest))
            super().connection_lost(exc)
            if self._answered is not None:  # uvicorn notifies only the last request
                self._answered.disconnected = True
                self._answered.message_event.set()
            self.cycle = self.scope = None  # type: ignore[assignment]  # which refer to this object
            self._answered = None
            self.pipeline.clear()

        def _wait_for_reader(self, before: int | None = None) -> None:
            left = self.transport.get_write_buffer_size()
            if left == before:
                self._abort()
            else:
                self._reading = self.loop.call_later(limits.idle_seconds, self._wait_for_reader, left)

        def _abort(self) -> None:
            self._over = True
            self.transport.abort()

    def _closing(error: HopfuseError) -> Any:
        """Return the application that answers a request by a refusal, and ends its connection."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = refused(error)
            response.headers["Connection"] = "close"
            answered("connection", status_of(error), error.code)
            await response(scope, receive, send)

        return answer

    return LimitedProtocol


class JoinedTransport:
    """The transport of an answer, which sends the head together with the first part of the body, by one system call.

    Parameters
    ----------
    transport : Transport
    close : callable
        Closes the connection after the answer.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport, self._head, self._sent = transport, b"", False
        self.is_closing, self.close = transport.is_closing, close

    def write(self, data: bytes) -> None:
        """Send data, unless it is the head."""
        if self._head:
            data, self._head, self._sent = self._head + data, b"", True
        elif not (self._sent or data.startswith(b"HTTP/1.1 100 ")):  # 100 Continue precedes the head
            self._head = data
            return
        self._transport.write(data)


class _Flow(FlowControl):
    """uvicorn's flow control, which also pauses reading while data is held that was not parsed."""

    _holds = False

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            if not self._holds:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            if not self._holds:
                self._transport.resume_reading()

    def hold(self) -> None:
        """Read no more until :meth:`release`."""
        if not self._holds:
            self._holds = True
            if not self.read_paused:
                self._transport.pause_reading()

    def release(self) -> None:
        """Read again, unless uvicorn has paused reading."""
        if self._holds:
            self._holds = False
            if not self.read_paused:
                self._transport.resume_reading()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer, and return None in its place."""
    if timer is not None:
        timer.cancel()
    return None
