"""Attacks by what a request contains and by what waits: values, nesting, bytes of bodies, seqs that never come.

Each function takes the server's address and a key (None without keys). Those that hold connections are context
managers.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from .attacks import DIM, ENTITIES, INDEX, LONG, LONG_PASSAGES, PASSAGES, Counts, Target, answers_of, attack, only

SEARCH = "/v1/search"
#: A seq that no index reaches.
NEVER = 2**62


def connected(url: str, seconds: float = 120.0) -> socket.socket:
    """Return a connection to a server."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 80), timeout=seconds)


def head(path: str, key: str | None, length: int, kind: str = "application/json", *lines: str) -> bytes:
    """Return the head of a POST whose body has so many bytes, with further headers."""
    bearer = () if key is None else (f"Authorization: Bearer {key}",)
    fixed = (f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Content-Length: {length}")
    return ("\r\n".join((*fixed, *bearer, *lines)) + "\r\n\r\n").encode()


def post(url: str, key: str | None, body: bytes, path: str = SEARCH, **headers: str) -> tuple[int, bytes]:
    """Send a body if the server wants it (Expect), and return the status and the body of the answer.

    What is sent after a refusal may reset the connection before the answer is read.
    """
    lines = [f"{name.replace('_', '-')}: {one}" for name, one in headers.items()]
    with contextlib.closing(connected(url)) as one:
        one.sendall(head(path, key, len(body), "application/json", "Expect: 100-continue", *lines))
        while len(status := one.recv(12, socket.MSG_PEEK)) < 12:
            if not status:
                raise ConnectionError("the server closed the connection without an answer")
        if status.endswith(b" 100"):
            one.sendall(body)
        return reply(one)


def reply(connection: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of the answer on a connection."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


# ---- Content --------------------------------------------------------------------------------------------------------


def searched(query: object, **more: object) -> bytes:
    """Return the body of a search of one query."""
    return json.dumps({"queries": [query], **more}).encode()


def ids_of(count: int) -> list[str]:
    """Return so many different ids: those of passages that exist, then others."""
    return [f"p{at}" for at in range(count)]


def known_ids(count: int) -> list[str]:
    """Return so many ids of passages that exist, each of them several times."""
    return [f"p{at % PASSAGES}" for at in range(count)]


def whole_query(**more: object) -> dict[str, object]:
    """Return a query that needs no encoder."""
    return {"vector": [1.0 / (1 + at) for at in range(DIM)], "entities": ["entity 3"], **more}


def condition_of_many_values(url: str, key: str | None, column: str = "tenant", count: int = 150_000) -> int:
    """Send a filter by a list of many strings."""
    values = [f"t{at}" for at in range(count)]
    return post(url, key, searched({"text": "a", "allow": {f"{column}__in": values}}))[0]


def many_conditions(url: str, key: str | None, column: str = "tenant", count: int = 5000) -> int:
    """Send a filter of many conditions on columns that do not exist."""
    return post(url, key, searched({"text": "a", "allow": {f"{column}{at}": "a" for at in range(count)}}))[0]


def many_ids(url: str, key: str | None, queries: int = 8, count: int = 20_000) -> int:
    """Send queries with many ids of passages each."""
    return post(url, key, json.dumps({"queries": [whole_query(allow=known_ids(count))] * queries}).encode())[0]


def different_ids(url: str, key: str | None, count: int = 100_000) -> int:
    """Send as many different ids as are allowed, of which the index has the first."""
    return post(url, key, searched(whole_query(allow=ids_of(count))))[0]


def many_names(url: str, key: str | None, queries: int = 256, count: int = 256) -> int:
    """Send as many queries with as many entities as are allowed."""
    names = [f"entity {at % ENTITIES}" for at in range(count)]
    return post(url, key, json.dumps({"queries": [whole_query(entities=names)] * queries}).encode())[0]


def invalid_vector(url: str, key: str | None, nbytes: int = 4 * 2**20 - 100) -> int:
    """Send a vector of many short numbers with a text at its end."""
    return post(url, key, b'{"queries":[{"vector":[' + b"1," * (nbytes // 2 - 20) + b'"x"]}]}')[0]


def long_vector(url: str, key: str | None, nbytes: int = 4 * 2**20 - 100) -> int:
    """Send a vector of many numbers of usual length."""
    return post(url, key, b'{"queries":[{"vector":[' + b"0.12345678901234567," * (nbytes // 20 - 4) + b"1]}]}")[0]


def long_base64(url: str, key: str | None, nbytes: int = 4 * 2**20 - 100) -> int:
    """Send a vector in base64 with a value that is not finite at its end."""
    numbers = base64.b64encode(b"\0" * (nbytes // 16 * 12 - 12) + struct.pack("<3f", 1, 2, float("nan"))).decode()
    return post(url, key, searched({"vector_base64": numbers}))[0]


def empty_queries(url: str, key: str | None, nbytes: int = 4 * 2**20 - 100) -> int:
    """Send many queries that have nothing."""
    return post(url, key, b'{"queries":[' + b"{}," * (nbytes // 3 - 10) + b"{}]}")[0]


def empty_lists(url: str, key: str | None, nbytes: int = 4 * 2**20 - 100) -> int:
    """Send options with many empty lists."""
    return post(url, key, b'{"queries":["a"],"options":{"a":[' + b"[]," * (nbytes // 3 - 20) + b"[]]}}")[0]


def nested(url: str, key: str | None, depth: int = 900) -> int:
    """Send options of nested lists."""
    return post(url, key, b'{"queries":["a"],"options":{"a":' + b"[" * depth + b"]" * depth + b"}}")[0]


def many_digits(url: str, key: str | None, digits: int = 4000) -> list[tuple[int, bytes]]:
    """Send numbers of many digits, and return the answers, which should not repeat them."""
    number = b"9" * digits
    return [
        post(url, key, body)
        for body in (
            b'{"queries":["a"],"k":' + number + b"}",
            b'{"queries":[{"text":"a","allow":[' + number + b"]}]}",
            b'{"queries":[{"text":"a","entities":[' + number + b"]}]}",
            b'{"queries":[{"text":"a","allow":{"number":' + number + b"}}]}",
            b'{"queries":["a"],"options":{"damping":' + number + b"}}",
        )
    ]


def many_hits(url: str, key: str | None, queries: int = 100, k: int = 1000) -> int:
    """Ask for as many hits as are allowed."""
    asked = {"queries": [whole_query()] * queries, "k": k, "recipe": "phase-graph", "options": {"dense_k": k}}
    return post(url, key, json.dumps(asked).encode())[0]


def long_passages(url: str, key: str | None, queries: int = 100, k: int = LONG_PASSAGES) -> int:
    """Ask for long passages, many times in one answer."""
    asked = {
        "queries": [{"text": "passage", "vector": [1.0] * DIM}] * queries,
        "k": k,
        "index": LONG,
        "timeout_ms": 60_000,
    }
    return post(url, key, json.dumps(asked).encode())[0]


def dify_text(url: str, key: str | None, index: str = INDEX, nbytes: int = 4 * 2**20 - 100) -> int:
    """Send a long question by Dify's protocol."""
    return post(url, key, json.dumps({"knowledge_id": index, "query": "a" * nbytes}).encode(), "/retrieval")[0]


def infer_numbers(url: str, key: str | None, index: str, nbytes: int = 4 * 2**20 - 200) -> int:
    """Send many numbers as JSON by the inference protocol."""
    data = b"1," * (nbytes // 2 - 100) + b"1"
    tensor = b'{"name":"vectors","shape":[1,8],"datatype":"FP32","data":[' + data + b"]}"
    return post(url, key, b'{"inputs":[' + tensor + b"]}", f"/v2/models/{index}/infer")[0]


def tool_ids(url: str, key: str | None, index: str = INDEX, count: int = 15_000) -> int:
    """Call a tool by MCP with many ids; return 400 if it answers an error."""
    arguments = {"text": "a", "index": index, "entities": ["entity 3"], "allow": known_ids(count)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": arguments}}
    status, answer = post(url, key, json.dumps(call).encode(), "/mcp", Accept="application/json, text/event-stream")
    return 400 if status == 200 and json.loads(answer)["result"].get("isError") else status


#: Attacks by one request, each of which is to be answered at once, and the status from a server with default limits.
REQUESTS: dict[Callable[[str, str | None], int], int] = {
    condition_of_many_values: 400,
    many_conditions: 400,
    many_ids: 200,
    different_ids: 400,
    many_names: 200,
    invalid_vector: 400,
    long_vector: 400,
    long_base64: 400,
    empty_queries: 400,
    empty_lists: 400,
    nested: 400,
    dify_text: 400,
}


# ---- Waiting --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def one_byte_short(
    url: str, key: str | None, count: int = 60, nbytes: int = 4 * 2**20 - 100, path: str = SEARCH
) -> Iterator[list[socket.socket]]:
    """Hold connections on which all of a body but its last byte was sent; what a server refuses to read is not sent."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(contextlib.closing(connected(url))) for _ in range(count)]
        for one in opened:
            with contextlib.suppress(OSError):
                one.sendall(head(path, key, nbytes) + b" " * (nbytes - 1))
        yield opened


@contextlib.contextmanager
def far_ahead(
    url: str, key: str | None, count: int = 12, numbers: int = 190_000, timeout_ms: int = 60_000
) -> Iterator[list[socket.socket]]:
    """Hold connections with large requests that wait for a seq that no index reaches."""
    vector = b'{"vector":[' + b"0.12345678901234567," * numbers + b"1]}"
    body = b'{"queries":[%s],"at_least":%d,"timeout_ms":%d}' % (vector, NEVER, timeout_ms)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(contextlib.closing(connected(url))) for _ in range(count)]
        for one in opened:
            with contextlib.suppress(OSError):
                one.sendall(head(SEARCH, key, len(body)) + body)
        yield opened


# ---- Attacks --------------------------------------------------------------------------------------------------------

#: Growth of memory by what one key may hold (``limits.key_bytes``), with room for buffers of connections.
HELD_MIB = 160.0


def _again_and_again(one: Callable[[str, str | None], int]) -> Callable[[Target], Counts]:
    def run(target: Target) -> Counts:
        counts: Counter[str] = Counter()
        while target.goes_on():
            counts[str(one(target.url, target.key))] += 1
        return counts

    run.__doc__ = one.__doc__
    return run


for _one, _status in REQUESTS.items():
    attack(_one.__name__.replace("_", " "), only(_status))(_again_and_again(_one))
attack("many hits", only(200), memory_mib=HELD_MIB)(_again_and_again(many_hits))
attack("tool ids", only(200), triggered=10.0)(_again_and_again(tool_ids))  # which takes texts alone


@attack("long passages", only(200, 400, 429, each=(200, 400)), memory_mib=HELD_MIB)
def answers_of_long_passages(target: Target) -> Counts:
    """Answers of 1 GB and of 40 MB with long passages, on four connections."""
    counts: Counter[str] = Counter()

    def ask(number: int) -> None:
        while target.goes_on():
            counts[str(long_passages(target.url, target.key, queries=4 if number % 2 else 100))] += 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    return counts


@attack("many digits", only(400))
def numbers_of_many_digits(target: Target) -> Counts:
    """Numbers of many digits in each field that has some."""
    counts: Counter[str] = Counter()
    while target.goes_on():
        counts.update(str(status) for status, _ in many_digits(target.url, target.key))
    return counts


@attack("numbers as JSON", only(400, 413))
def numbers_as_json(target: Target) -> Counts:
    """Many numbers as JSON by the inference protocol."""
    counts: Counter[str] = Counter()
    while target.goes_on():
        counts[str(infer_numbers(target.url, target.key, INDEX))] += 1
    return counts


#: Connections that ask for options at a time: more than a key may have made (``limits.option_sets``).
ASKERS = 24


@attack("many option sets", only(200, 429, 504))
def many_option_sets(target: Target) -> Counts:
    """Searches on 24 connections, each with a damping that nobody used before."""
    counts: Counter[str] = Counter()
    numbers = itertools.count(1)

    def ask() -> None:
        while target.goes_on():
            options = {"damping": 0.5 + next(numbers) / 2**24}
            body = searched(whole_query(), options=options, timeout_ms=500)
            counts[str(post(target.url, target.key, body)[0])] += 1

    threads = [threading.Thread(target=ask) for _ in range(ASKERS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return counts


@attack("bodies that lack a byte", only(429), memory_mib=HELD_MIB)
def bodies_that_lack_a_byte(target: Target) -> Counts:
    """60 bodies of 4 MiB of one key, each without its last byte."""
    with one_byte_short(target.url, target.key) as connections:
        return _waited(target, connections)


@attack("a seq that never comes", only(429, least=0), memory_mib=HELD_MIB)
def a_seq_that_never_comes(target: Target) -> Counts:
    """12 requests of 4 MB of one key that wait for a seq which no index reaches."""
    with far_ahead(target.url, target.key) as connections:
        return _waited(target, connections)


def _waited(target: Target, connections: list[socket.socket]) -> Counts:
    while target.goes_on():
        time.sleep(0.1)
    return answers_of(connections)
