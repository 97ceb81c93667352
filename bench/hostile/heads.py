"""Messages without an end: URLs, headers, and what frames a body in chunks."""

from __future__ import annotations

import time
from collections import Counter

from .attacks import Counts, Target, attack, flood, held, only

#: What is sent at a time.
PART = b"a" * 65536
CHUNKED = "Transfer-Encoding: chunked"


@attack("endless header", only(431))
def endless_header(target: Target) -> Counts:
    """One header that does not end, on four connections."""
    return flood(target, target.head("GET /") + b"X: ", PART)


@attack("small headers", only(431))
def small_headers(target: Target) -> Counts:
    """Headers of four bytes without an end, on four connections."""
    return flood(target, target.head("GET /"), b"a:\r\n" * 16384)


@attack("endless URL", only(431))
def endless_url(target: Target) -> Counts:
    """A URL that does not end, on four connections."""
    return flood(target, b"GET /", PART)


@attack("blank lines", only(431))
def blank_lines(target: Target) -> Counts:
    """Blank lines before a request that does not come."""
    return flood(target, b"", b"\r\n" * 8192)


@attack("slow headers", only(408, 431, least=0))
def slow_headers(target: Target) -> Counts:
    """200 heads that arrive byte by byte."""
    with held(target, 200, target.head("GET /") + b"X: ") as connections:
        while target.goes_on():
            for one in connections:
                try:
                    one.sendall(b"a")
                except ConnectionError:
                    continue
            time.sleep(0.05)
    return Counter()


@attack("pipelined heads", only(200))
def pipelined_heads(target: Target) -> Counts:
    """Requests of the shortest form one after the other, without reading the answers, on four connections."""
    return flood(target, b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2000)


@attack("small chunks", only(401, 413))
def small_chunks(target: Target) -> Counts:
    """A body in chunks of one byte, without a key."""
    return flood(target, target.head("POST /v1/search", CHUNKED) + b"\r\n", b"1\r\n \r\n" * 8192)


@attack("small chunks with a key", only(413))
def small_chunks_with_a_key(target: Target) -> Counts:
    """A body in chunks of one byte, with a key."""
    return flood(target, target.head("POST /v1/search", CHUNKED, keyed=True) + b"\r\n", b"1\r\n \r\n" * 8192)


@attack("endless chunk extension", only(401, 413))
def endless_extension(target: Target) -> Counts:
    """An extension of a chunk that does not end."""
    return flood(target, target.head("POST /v1/search", CHUNKED) + b"\r\n1;a=", PART)


@attack("endless trailers", only(413))
def endless_trailers(target: Target) -> Counts:
    """Trailers without an end, after an empty body."""
    return flood(target, target.head("POST /v1/search", CHUNKED, keyed=True) + b"\r\n0\r\n", b"a: b\r\n" * 8192)


@attack("a body without a key", only(401))
def unwanted_body(target: Target) -> Counts:
    """A body of a tebibyte, without a key."""
    return flood(target, target.head("POST /v1/search", f"Content-Length: {2**40}") + b"\r\n", PART)


@attack("no HTTP", only(400))
def no_http(target: Target) -> Counts:
    """Bytes that are no request."""
    return flood(target, b"", b"nonsense\r\n\r\n")
