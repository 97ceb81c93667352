"""Clients that send requests without waiting for answers, or bodies after them."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import uvicorn
from hopfuse.serve import make_server
from serve.served import ENCODERS, configured
from uvicorn.server import ServerState

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 1000 + b"\r\n\r\n"


class Recorded:
    """A transport that keeps what is written."""

    def __init__(self, transport, written):
        self._transport, self._written = transport, written

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def write(self, data):
        self._written.append(data)
        self._transport.write(data)


@contextlib.asynccontextmanager
async def connected(app, written=None, counting=None, count=None, **limits):
    """The protocol of a connection to a server of ``app``, and the client's streams.

    What is written is kept, if wanted; ``count()`` is called at each call of the protocol's method ``counting``.
    """
    served = make_server(configured("none", limits=limits), ENCODERS).config.http

    class Recording(served):
        def connection_made(self, transport):
            super().connection_made(transport if written is None else Recorded(transport, written))

    if counting is not None:

        def counted(self, *given):
            count()
            getattr(served, counting)(self, *given)

        setattr(Recording, counting, counted)
    made, config = [], uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()

    def make():
        made.append(Recording(config, ServerState(), {}))
        return made[0]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield made, reader, writer
    finally:
        writer.close()
        server.close()
        for one in made:
            one.transport.abort()
        await asyncio.sleep(0)  # which closes the sockets


async def answer(send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def test_requests_that_nobody_waits_for_are_not_held():
    held = []

    async def run():
        async def app(scope, receive, send):
            held.append(len(made[0].pipeline))
            await receive()  # the body, which is empty
            await answer(send)

        async with connected(app) as (made, reader, writer):
            writer.write(3000 * REQUEST)
            for _ in range(3000):
                await reader.readuntil(b"\r\n\r\nok")

    asyncio.run(run())
    assert len(held) == 3000
    assert max(held) == 0


def test_the_request_that_is_answered_is_told_that_its_client_left():
    told = []

    async def run():
        async def app(scope, receive, send):
            begun.set()
            await receive()  # the body, which is empty
            told.append((await receive())["type"])
            await answer(send)
            ended.set()

        begun, ended = asyncio.Event(), asyncio.Event()
        async with connected(app) as (_, _, writer):
            writer.write(3 * REQUEST)
            await begun.wait()
            for _ in range(20):  # the other requests are read, and wait
                await asyncio.sleep(0)
            writer.close()
            await asyncio.wait_for(ended.wait(), 600)

    asyncio.run(run())
    assert told == ["http.disconnect"]


BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"


async def answering(scope, receive, send):
    """Answer once the body is there."""
    await receive()
    await answer(send)


async def refusing(scope, receive, send):
    """Answer at once, whatever the body is."""
    await answer(send)


async def ask(reader, writer, data):
    writer.write(data)
    await reader.readuntil(b"\r\n\r\nok")


async def drip(writer):
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


def test_a_body_that_goes_on_after_its_answer_is_cut_off():
    async def run():
        async with connected(refusing, body_seconds=0.05) as (_, reader, writer):
            await ask(reader, writer, BODY)
            await asyncio.wait_for(drip(writer), 600)

    with pytest.raises(ConnectionError):
        asyncio.run(run())


def test_a_connection_is_kept_whose_body_ended_after_its_answer():
    async def run():
        async with connected(refusing, body_seconds=600) as (made, reader, writer):
            await ask(reader, writer, BODY)
            assert made[0]._rest is not None  # it would be closed
            await ask(reader, writer, b"x" * 1_000_000 + REQUEST)
            assert made[0]._rest is None

    asyncio.run(run())


def test_a_head_and_its_body_are_written_together():
    async def app(scope, receive, send):
        if scope["method"] == "POST":
            await receive()  # asks for the body by 100 Continue
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"38")]})
        for part, more in ((b"HTTP/1.1 100 is how the body begins", True), (b"and", True), (b"", False)):
            await send({"type": "http.response.body", "body": part, "more_body": more})

    expecting = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"

    async def run(asked, rest):
        written = []
        async with connected(app, written) as (_, reader, writer):
            writer.write(asked)
            if rest:
                await reader.readuntil(b"Continue\r\n\r\n")
                writer.write(rest)
            await reader.readuntil(b"body beginsand")
        return written

    for asked, rest, before in ((REQUEST, b"", 0), (expecting, b"x", 1)):
        written = asyncio.run(run(asked, rest))
        assert [data.startswith(b"HTTP/1.1 100 Continue\r\n") for data in written[:before]] == [True] * before
        assert written[before].startswith(b"HTTP/1.1 200 OK\r\n")
        assert written[before].endswith(b"\r\n\r\nHTTP/1.1 100 is how the body begins")
        assert written[before + 1] == b"and"


def test_a_server_that_stops_answers_the_next_request_and_closes():
    async def run():
        async with connected(answering) as (made, reader, writer):
            await ask(reader, writer, REQUEST)
            made[0].shutdown()
            writer.write(REQUEST)
            assert b"connection: close" in await reader.readuntil(b"\r\n\r\nok")
            assert await reader.read() == b""
        async with connected(answering) as (made, reader, writer):
            await ask(reader, writer, REQUEST)
            made[0].shutdown()
            assert await reader.read() == b""  # nothing was sent for half a second

    asyncio.run(run())
