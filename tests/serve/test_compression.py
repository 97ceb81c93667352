"""Compressed answers: only if the configuration says so and the client accepts them, and the same content."""

from __future__ import annotations

import gzip
import zlib

import httpx
import pytest
from serve.served import configured, running

SEARCH = {"queries": ["What is far from Ankara?"] * 24, "k": 12}
#: Its answer is sent in parts.
LARGE = SEARCH | {"queries": SEARCH["queries"] * 4}


@pytest.fixture(scope="module")
def compressing(path):
    with running(configured(path, compress_bytes=2000)) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def raw(client, accepts, **request):
    """The headers and the bytes of an answer as they were sent."""
    headers = {"Accept-Encoding": accepts}
    with client.stream(
        request.pop("method", "POST"), request.pop("to", "/v1/search"), headers=headers, **request
    ) as answer:
        return answer.headers, b"".join(answer.iter_raw())


def results(content):
    """An answer without its timings, which differ."""
    return content.partition(b'"seq"')[0]


def test_answers_are_compressed_as_the_client_accepts(compressing):
    headers, plain = raw(compressing, "identity", json=SEARCH)
    assert "content-encoding" not in headers
    assert headers["vary"] == "Accept-Encoding"
    assert len(plain) > 30_000  # on a thread
    for accepts, encoding, read in (
        ("gzip", "gzip", gzip.decompress),
        ("deflate, gzip;q=0.5, br", "gzip", gzip.decompress),
        ("deflate", "deflate", zlib.decompress),
    ):
        headers, sent = raw(compressing, accepts, json=SEARCH)
        assert headers["content-encoding"] == encoding
        assert int(headers["content-length"]) == len(sent) < len(plain) / 4
        assert results(read(sent)) == results(plain)
    for accepts in ("gzip;q=0", "br", "*", "gzip;q=x", ""):
        headers, sent = raw(compressing, accepts, json=SEARCH)
        assert "content-encoding" not in headers
        assert results(sent) == results(plain)


def test_a_compressed_answer_in_parts_has_no_length(compressing):
    _, plain = raw(compressing, "identity", json=LARGE)
    headers, sent = raw(compressing, "gzip", json=LARGE)
    assert headers["transfer-encoding"] == "chunked"
    assert len(sent) < len(plain) / 4
    assert results(gzip.decompress(sent)) == results(plain)


def test_small_answers_and_unconfigured_servers_compress_nothing(compressing, client):
    for answer in (
        raw(compressing, "gzip", to="/health/live", method="GET"),
        raw(client, "gzip", json=SEARCH | {"k": 50}),
    ):
        assert "content-encoding" not in answer[0]
        assert "vary" not in answer[0]


def test_a_page_and_an_error_of_several_connections(compressing):
    assert "<html" in compressing.get("/").text
    head = compressing.head("/v1/passages/p3")
    assert (head.status_code, head.content) == (200, b"")
    assert compressing.post("/v1/search", json={"queries": []}).json()["error"]["field"] == "queries"
