"""Clients that send what is endless, ambiguous or too much, over raw sockets; and the others, who notice nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import random
import select
import sys
import time
import tracemalloc

import httpx
import processes
import pytest
from hopfuse.serve import new_key
from serve.raw import Raw, get, head, post
from serve.served import configured, running, until
from serve.test_connections import answer, connected

SEARCH = json.dumps({"queries": ["Who is in Lima?"], "k": 2}).encode()
#: More than a server with the default limits reads of a message, with what the system buffers of a connection.
FAR = 32 * 2**20


@pytest.fixture(scope="module")
def default(path):
    """A server with the default limits."""
    with running(configured(path)) as url:
        yield url


ENDLESS = {
    "one header": (head("GET", "/") + b"X: ", b"a" * 65536),
    "one name": (head("GET", "/"), b"a" * 65536),
    "small headers": (head("GET", "/"), b"a: b\r\n" * 1000),
    "a long URL": (b"GET /", b"a" * 65536),
    "a long query": (b"GET /health/live?a=", b"a%20" * 1000),
    "blank lines": (b"", b"\r\n" * 1000),
    "blanks in a header": (head("GET", "/") + b"X:", b" " * 65536),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("before", [0, 2])
def test_an_endless_head_is_refused(name, before, default):
    first, part = ENDLESS[name]
    with Raw(default) as raw:
        raw.send(before * get("/health/live") + first)
        assert [raw.answer().status for _ in range(before)] == [200] * before
        sent, refusal = raw.flood(part), raw.answer()
        assert refusal.status == 431
        assert (refusal.error["code"], refusal.error["class"]) == ("head_too_large", "InputError")
        assert refusal.headers["connection"] == "close"
        assert refusal.error["values"]["allowed"] in (65536, 100)
        assert sent < FAR
        assert raw.ends()


def test_a_head_of_exactly_the_limit_is_read_however_it_arrives():
    async def run(size, parts):
        async def app(scope, receive, send):
            await answer(send)

        async with connected(app, header_bytes=2048) as (_, reader, writer):
            first = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
            data = first + b"x" * (size - len(first) - 4) + b"\r\n\r\n"
            assert len(data) == size
            for _ in range(2):  # each head counts by itself
                for at in range(0, size, parts):
                    writer.write(data[at : at + parts])
                    await asyncio.sleep(0)
                with contextlib.suppress(asyncio.IncompleteReadError):
                    statuses.append((await reader.readuntil(b"\r\n\r\n"))[9:12])
                    await reader.readexactly(2)

    for parts in (1, 700, 10_000):
        for size, expected in ((2048, [b"200", b"200"]), (2049, [b"431"])):
            statuses: list[bytes] = []
            asyncio.run(run(size, parts))
            assert statuses[: len(expected)] == expected


@pytest.mark.parametrize("start", [b"GET /health/live HTTP/1.1\r\nX: ", b"GET /health/live?", b"GET /"])
def test_a_connection_keeps_no_head_of_an_answered_request(start, default):
    size, count = 60_000, 50
    rest = b"" if start.endswith(b": ") else b" HTTP/1.1"
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Raw(default)) for _ in range(count)]
        for raw in opened:
            raw.send(get("/health/live")).answer()
        gc.collect()
        tracemalloc.start()
        try:
            for raw in opened:
                raw.send(start, b"a" * size, rest, b"\r\nHost: localhost\r\n\r\n")
                assert raw.answer().status in (200, 404)

            def held():
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            until(lambda: held() < size * count / 4, 60)
        finally:
            tracemalloc.stop()


def test_a_head_with_too_many_headers_is_refused(path):
    with running(configured(path, "[limits]\nheaders = 20\n")) as url, Raw(url) as raw:
        for count, status in ((19, 200), (20, 431)):
            found = raw.send(head("GET", "/health/live"), count * b"a: b\r\n", b"\r\n").answer()
            assert found.status == status
        assert found.error["values"]["allowed"] == 20
        assert raw.ends()


CHUNKED = head("POST", "/v1/search") + b"Transfer-Encoding: chunked\r\n\r\n"
FRAMED = {
    "an extension": (CHUNKED + b"5;a=", b"a" * 65536),
    "a size": (CHUNKED + b"0", b"0" * 65536),
    "small chunks": (CHUNKED, b"1\r\n \r\n" * 1000),
    "extensions": (CHUNKED, b"1;aaaaaaaaaaaaaaa\r\n \r\n" * 1000),
    "one trailer": (CHUNKED + b"0\r\nX: ", b"a" * 65536),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * 1000),
}


@pytest.mark.parametrize("name", FRAMED)
def test_what_frames_the_chunks_of_a_body_is_bounded(name, default):
    first, part = FRAMED[name]
    with Raw(default) as raw:
        sent = raw.send(first).flood(part)
        found = raw.answer()
        assert (found.status, found.error["code"]) in ((413, "too_large"), (400, "syntax"))
        assert sent < FAR
        assert raw.ends()


def test_chunks_of_usual_sizes_and_trailers_are_read(default):
    pieces = [SEARCH[at : at + 7] for at in range(0, len(SEARCH), 7)]
    body = b"".join(b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nX: y\r\n\r\n"
    with Raw(default) as raw:
        found = [raw.send(CHUNKED + body + get()).answer() for _ in range(2)]
        assert [one.status for one in found] == [200, 200]
        assert "results" in json.loads(found[0].body)
        assert "indexes" in json.loads(found[1].body)
    large = json.dumps({"queries": ["Lima"], "fields": [], "options": {}, "k": 2}).encode() + b" " * 2**20

    def streamed():
        for at in range(0, len(large), 256):
            yield large[at : at + 256]

    assert httpx.post(f"{default}/v1/search", content=streamed()).status_code == 200


def test_a_trailer_is_no_header():
    seen = []

    async def run():
        async def app(scope, receive, send):
            while (await receive())["more_body"]:
                pass
            seen.append([name for name, _ in scope["headers"]])
            await answer(send)

        async with connected(app) as (_, reader, writer):
            writer.write(CHUNKED + b"1\r\na\r\n0\r\nAuthorization: Bearer other\r\n\r\n")
            await reader.readuntil(b"\r\n\r\nok")

    asyncio.run(run())
    assert seen == [[b"host", b"transfer-encoding"]]


UPGRADES = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
    "websocket": b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    "another": b"UPGRADE: TLS/1.0\r\nConnection: upgrade\r\n",
}


@pytest.mark.parametrize("name", UPGRADES)
def test_upgrade_is_ignored(name, default):
    hidden = get("/openapi.json")  # as a body, which must not run
    with Raw(default) as raw:
        plain = raw.send(post(SEARCH)).answer()
        invalid = raw.send(post(hidden)).answer()
        assert (plain.status, invalid.status) == (200, 400)
        for body, expected in ((SEARCH, plain), (hidden, invalid), (SEARCH, plain)):
            asked = post(body, more=UPGRADES[name])
            cut = len(asked) - len(body)
            for parts in ([asked], [asked[:cut], asked[cut:]], [asked[: cut - 1], asked[cut - 1 :]]):
                for part in parts:
                    raw.send(part)
                    if len(parts) > 1:
                        time.sleep(0.01)
                found = raw.answer()
                assert found.status == expected.status
                given, wanted = json.loads(found.body), json.loads(expected.body)
                assert given.get("results", given) == wanted.get("results", wanted)
        found = [one.status for one in (raw.send(get() + get()).answer(), raw.answer())]
        assert found == [200, 200]


def test_connect_is_no_method_of_the_server(default):
    with Raw(default) as raw:
        found = raw.send(b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n" + get()).answer()
        assert (found.status, found.error["code"]) == (405, "method")
        assert raw.ends()


def messages(draw):
    """A message, and what an application sees of it."""
    body = bytes(draw.choice(b"ab \r\n0") for _ in range(draw.choice((0, 0, 1, 5, 300))))
    path = f"/{draw.randrange(1000)}"
    lines = [f"POST {path} HTTP/1.1", "Host: a", *(f"X-{at}: {'x' * draw.randrange(50)}" for at in range(3))]
    if draw.random() < 0.3:
        lines += ["Connection: Upgrade", "Upgrade: h2c"]
    if draw.random() < 0.5:
        sizes = [draw.randrange(1, 9) for _ in range(len(body))]
        parts, at = [], 0
        for size in sizes:
            if at < len(body):
                parts.append(body[at : at + size])
                at += size
        framed = b"".join(b"%x%b\r\n%b\r\n" % (len(part), draw.choice((b"", b";a=b")), part) for part in parts)
        framed += b"0\r\n" + draw.choice((b"", b"T: x\r\n")) + b"\r\n"
        lines.append("Transfer-Encoding: chunked")
    else:
        framed = body
        lines.append(f"Content-Length: {len(body)}")
    return draw.choice((b"", b"\r\n")) + "\r\n".join(lines).encode() + b"\r\n\r\n" + framed, (path, body)


@pytest.mark.parametrize("seed", range(4))
def test_requests_are_the_same_however_they_arrive(seed):
    draw = random.Random(seed)
    sent, expected = zip(*(messages(draw) for _ in range(120)), strict=True)
    data, seen = b"".join(sent), []

    async def run():
        async def app(scope, receive, send):
            body, more = b"", True
            while more:
                message = await receive()
                body, more = body + message["body"], message["more_body"]
            seen.append((scope["path"], body))
            await answer(send)

        async with connected(app) as (_, reader, writer):
            at, most = 0, draw.choice((3, 40, 3000, 10**6))
            while at < len(data):
                size = draw.randrange(1, most + 1)
                writer.write(data[at : at + size])
                at += size
                await asyncio.sleep(0)
            for _ in expected:
                assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")

    asyncio.run(run())
    assert seen == list(expected)


@pytest.mark.parametrize(("data", "kind"), [(b"1\r\nx\r\n", "parts"), (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "heads")])
def test_a_turn_of_the_event_loop_parses_little_of_a_connection(data, kind):
    counts: dict[int, int] = {}

    async def run():
        turn = 0

        def next_turn():
            nonlocal turn
            turn += 1
            loop.call_soon(next_turn)

        def count():
            counts[turn] = counts.get(turn, 0) + 1

        async def app(scope, receive, send):
            while (await receive()).get("more_body"):
                pass
            await answer(send)

        loop = asyncio.get_running_loop()
        async with connected(app, counting={"parts": "on_body", "heads": "on_headers_complete"}[kind], count=count) as (
            _,
            reader,
            writer,
        ):
            loop.call_soon(next_turn)
            many = 200_000 // len(data)
            writer.write((CHUNKED + b"10000\r\n" + b"x" * 65536 + b"\r\n" if kind == "parts" else b"") + many * data)
            while sum(counts.values()) < min(many, 3000):
                await asyncio.sleep(0)
                if reader._buffer:  # the answers, which would fill the connection
                    reader._buffer.clear()

    asyncio.run(run())
    assert max(counts.values()) <= {"parts": 16 * 1024 // 5, "heads": 16}[kind]


def test_a_refusal_is_sent_after_the_answers_before_it():
    async def run():
        async def app(scope, receive, send):
            begun.set()
            await held.wait()
            await answer(send)

        begun, held = asyncio.Event(), asyncio.Event()
        async with connected(app) as (_, reader, writer):
            writer.write(2 * get("/") + b"nonsense\r\n\r\n")
            await begun.wait()
            await asyncio.sleep(0.05)
            held.set()
            found = await reader.read()
        return [part[:3] for part in found.split(b"HTTP/1.1 ")[1:]]

    assert asyncio.run(run()) == [b"200", b"200", b"400"]


def test_a_client_that_reads_late_gets_its_refusal(default):
    with Raw(default) as raw, contextlib.suppress(ConnectionError):
        raw.send(head("GET", "/") + b"X: " + b"a" * 700_000)
        assert select.select([raw.socket], [], [], 600)[0]  # the server has answered
        raw.send(b"a" * 100_000)
        found = raw.answer()
        assert found.status == 431
        return
    raise AssertionError("the answer was lost")


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "syntax", None),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "length", "Host"),
        (b"GET / HTTP/1.1\r\n\r\n", "length", "Host"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "syntax", None),
        (head("POST", "/v1/search") + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n", "syntax", None),
        (head("POST", "/v1/search") + b"Transfer-Encoding: gzip\r\n\r\n" + SEARCH, "syntax", None),
        (head("GET", "http://"), "syntax", None),
    ],
)
def test_what_is_no_request_is_refused_as_json(sent, code, field, default):
    with Raw(default) as raw:
        found = raw.send(sent, b"\r\n").answer()
        assert (found.status, found.error["code"], found.error["field"]) == (400, code, field)
        assert raw.ends()


def test_malformed_requests_cost_few_lines_of_the_log(default, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(60):
            with Raw(default) as raw:
                assert raw.send(b"nonsense\r\n\r\n").answer().status == 400
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) <= 20


def test_the_rest_of_an_answered_body_is_not_read_for_ever(path):
    config = configured(path, "[limits]\nbody_bytes = 100000\n", keys={"one": {"sha256": new_key()[1]}})
    with running(config) as url, Raw(url) as raw:
        raw.send(head("POST", "/v1/search") + b"Content-Length: %d\r\n\r\n" % 2**40)
        assert raw.answer().status == 401
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 2 * FAR:
                raw.send(b"x" * 65536)
                sent += 65536
        assert sent < FAR


# ---- Numbers of connections and requests -----------------------------------------------------------------------------


def busy(url, address="127.0.0.1", key=""):
    """A connection whose request is not answered, since a byte of its body is missing."""
    raw = Raw(url, address)
    raw.send(post(SEARCH, key=key)[:-1])
    return raw


def asked(url, path="/v1/indexes", address="127.0.0.1", key=""):
    """The answer to one request on a connection of its own."""
    with Raw(url, address) as raw:
        return raw.send(get(path, key)).answer()


def open_connections(url):
    text = asked(url, "/metrics", "127.0.0.9").body.decode()
    return float(next(line for line in text.splitlines() if line.startswith("hopfuse_connections ")).split()[1])


def test_connections_without_a_request_give_way(path):
    with running(configured(path, "[limits]\nconnections = 6\n")) as url, contextlib.ExitStack() as stack:
        first = stack.enter_context(Raw(url))
        assert first.send(get()).answer().status == 200
        others = [stack.enter_context(Raw(url)) for _ in range(30)]
        assert asked(url).status == 200
        assert first.ends()
        assert all(one.ends() for one in others[:20])
        assert others[-1].send(get()).answer().status == 200
        until(lambda: open_connections(url) <= 6)


def test_idle_connections_of_one_address_close_none_of_another(path):
    limits = "[limits]\nconnections = 8\naddress_connections = 4\n"
    with running(configured(path, limits)) as url, contextlib.ExitStack() as stack:
        mine = [stack.enter_context(Raw(url, "127.0.0.2")) for _ in range(3)]
        assert [one.send(get()).answer().status for one in mine] == [200] * 3
        others = [stack.enter_context(Raw(url, "127.0.0.3")) for _ in range(40)]
        assert asked(url, address="127.0.0.3").status == 200
        assert others[0].ends()
        assert [one.send(get()).answer().status for one in mine] == [200] * 3


HEALTH = ["/health/live", "/health/ready", "/health/live?a=b", "/v2/health/live", "/v2/health/ready"]


def test_too_many_busy_connections_are_refused_but_health_is_answered(path):
    with running(configured(path, "[limits]\nconnections = 3\n")) as url, contextlib.ExitStack() as stack:
        held = [stack.enter_context(busy(url)) for _ in range(3)]
        found = until(lambda: (one := asked(url)).status == 503 and one)
        assert (found.error["code"], found.error["values"]["most"]) == ("unavailable", 3)
        assert (found.headers["retry-after"], found.headers["connection"]) == ("1", "close")
        silent = [stack.enter_context(Raw(url)) for _ in range(200)]  # more than the reserve
        for path_ in HEALTH:
            assert asked(url, path_).status == 200
        assert asked(url, "/health").status == 503
        assert silent[0].ends()
        with Raw(url) as raw:  # the body of a refused request is none
            found = raw.send(post(get("/health/live"))).answer()
            assert found.status == 503
            assert raw.ends()
        held[0].send(SEARCH[-1:])
        assert held[0].answer().status == 200
        assert until(lambda: asked(url).status == 200)


def test_busy_connections_of_one_address_are_refused_to_it_alone(path):
    limits = "[limits]\naddress_connections = 2\n"
    with running(configured(path, limits)) as url, contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(busy(url, "127.0.0.2"))
        found = until(lambda: (one := asked(url, address="127.0.0.2")).status == 429 and one)
        assert (found.error["code"], found.error["values"]["most"]) == ("overloaded", 2)
        assert (found.headers["retry-after"], found.headers["connection"]) == ("1", "close")
        assert asked(url, address="127.0.0.3").status == 200
        assert asked(url, "/health/live", "127.0.0.2").status == 200


@pytest.fixture(scope="module")
def keys():
    return {name: new_key() for name in ("one", "two")}


def with_keys(path, limits, keys):
    return configured(path, f"[limits]\n{limits}\n", keys={name: {"sha256": made[1]} for name, made in keys.items()})


@pytest.mark.parametrize("limit", ["key_requests", "key_connections"])
def test_a_key_has_a_limit_of_its_own(limit, path, keys):
    one, two = keys["one"][0], keys["two"][0]
    with running(with_keys(path, f"{limit} = 2", keys)) as url, contextlib.ExitStack() as stack:
        held = [stack.enter_context(busy(url, key=one)) for _ in range(2)]
        found = until(lambda: (other := asked(url, key=one)).status == 429 and other)
        assert (found.error["code"], found.error["values"]["most"]) == ("overloaded", 2)
        assert "one" in found.error["values"].values()
        assert found.headers["retry-after"] == "1"
        assert asked(url, key=two).status == 200
        assert asked(url, "/health/ready").status == 200
        assert asked(url, key="none").status == 401
        held[0].send(SEARCH[-1:])
        assert held[0].answer().status == 200
        assert until(lambda: asked(url, key=one).status == 200)


def test_a_request_whose_client_left_is_counted_no_longer(path, keys):
    one = keys["one"][0]
    with running(with_keys(path, "key_requests = 1", keys)) as url:
        for _ in range(5):
            with busy(url, key=one):
                until(lambda: asked(url, key=one).status == 429)
            assert until(lambda: asked(url, key=one).status == 200)


def test_idle_connections_of_a_key_give_way_to_its_own(path, keys):
    one, two = keys["one"][0], keys["two"][0]
    with running(with_keys(path, "key_connections = 2", keys)) as url, contextlib.ExitStack() as stack:
        other = stack.enter_context(Raw(url))
        assert other.send(get(key=two)).answer().status == 200
        mine = [stack.enter_context(Raw(url)) for _ in range(5)]
        assert [raw.send(get(key=one)).answer().status for raw in mine] == [200] * 5
        assert [raw.ends() for raw in mine[:3]] == [True] * 3
        assert [raw.send(get(key=one)).answer().status for raw in mine[3:]] == [200] * 2
        assert other.send(get(key=two)).answer().status == 200


# ---- Headers ---------------------------------------------------------------------------------------------------------


def test_an_encoded_body_is_refused(default):
    for name, value, status in (
        ("Content-Encoding", "identity", 200),
        ("Content-Encoding", "br", 415),
        ("Content-Encoding", "gzip, br", 415),
        ("Transfer-Encoding", "gzip, chunked", 415),
    ):
        body = SEARCH if name.startswith("C") else b"%x\r\n%b\r\n0\r\n\r\n" % (len(SEARCH), SEARCH)
        length = b"Content-Length: %d\r\n" % len(SEARCH) if name.startswith("C") else b""
        with Raw(default) as raw:
            found = raw.send(head("POST", "/v1/search"), length, f"{name}: {value}\r\n\r\n".encode(), body).answer()
            assert found.status == status
            if status != 200:
                assert (found.error["code"], found.error["field"]) == ("unsupported", name)


def test_no_answer_is_taken_for_another_type(default):
    for asked_for in (post(SEARCH), get("/nowhere"), get("/health/live"), get("/"), get("/openapi.json")):
        with Raw(default) as raw:
            assert raw.send(asked_for).answer().headers["x-content-type-options"] == "nosniff"


def test_pages_of_other_sites_may_read_when_to_try_again(path):
    with running(configured(path, origins=["https://example.org"])) as url:
        found = httpx.get(f"{url}/v1/indexes", headers={"Origin": "https://example.org"})
        assert found.headers["access-control-expose-headers"].lower() == "retry-after"


def test_the_limit_of_open_files_is_raised_for_all_connections():
    code = (
        "import resource\n"
        "from hopfuse.serve import Limits\n"
        "from hopfuse.serve.server import allow_files\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, min(hard, 1000) if hard > 0 else 1000))\n"
        "for connections in (300, 5000):\n"
        "    allow_files(Limits(connections=connections))\n"
        "    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split())
    assert (300 < first < 1000, second) == (True, 1000)
    assert "limits.connections = 5000" in done.stderr
