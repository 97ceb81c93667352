"""Requests as nobody should send them: refused with the field's name; nothing fails, hangs or grows."""

from __future__ import annotations

import json
import re
import socket
import struct
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from serve.forged import INFER, LIMITS, ROUTES, Answered, Request, Wire, ask_forged, fault, served

HASTY = LIMITS + "body_seconds = 0.5\nheader_seconds = 1.0\nidle_seconds = 0.5\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server whose index may be changed, with small limits."""
    with served(tmp_path_factory.mktemp("fuzzed"), LIMITS) as url:
        yield url


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """The same, and it waits for nobody."""
    with served(tmp_path_factory.mktemp("hasty"), HASTY) as url:
        yield url


@pytest.fixture
def wire(url):
    with closing(Wire(url)) as wire:
        yield wire


def waiting(url) -> float:
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        found = re.findall(r"^hopfuse_queue_(?:requests|queries|bytes) (.*)$", answer.read().decode(), re.MULTILINE)
    return sum(map(float, found))


def test_the_requests_that_are_changed_are_good_ones(wire):
    for path, body in ROUTES:
        patient = body | {"timeout_ms": 60_000} if "timeout_ms" in body else body
        answered = wire.send(Request("POST", path, json.dumps(patient).encode()).wire())
        assert answered.status == 200, answered.body


def test_forged_requests_are_refused_and_nothing_fails(url, wire):
    """``.ci/soak`` sends more of them."""
    assert {200, 400, 404, 405} <= ask_forged(wire, 300)
    assert waiting(url) == 0


@pytest.mark.parametrize(
    ("answered", "says"),
    [
        (Answered(500, b'{"error": {"code": "failed", "message": "it failed"}}'), "answered 500"),
        (Answered(504, b"{}"), "answered 504"),
        (Answered(0), "closed without an answer"),
        (Answered(400, b"Traceback"), "the refusal is"),
        (Answered(400, b'{"error": {"code": "range", "message": ""}}'), "the message is"),
        (Answered(400, b'{"error": {"message": "<X object at 0x7f>"}}'), "the message is"),
        (Answered(400, b'{"error": {"message": "it is wrong", "field": "nope[0]"}}'), "is in no request"),
        (Answered(200, b"{}"), ""),
        (Answered(429, b'{"error": {"message": "k is large", "field": "k"}}'), ""),
    ],
)
def test_the_answers_that_count_as_faults(answered, says):
    found = fault(Request("POST", "/v1/search", b"{}"), answered)
    assert says in found
    assert bool(found) == bool(says)


@pytest.mark.parametrize(("written", "read"), [(rb"o\tions", "o\tions"), (rb"\u00e9t", "ét"), (rb"\"a\\", '"a\\')])
def test_a_field_may_be_written_by_escapes(written, read):
    body = json.dumps({"error": {"message": "it does not exist", "field": read}}).encode()
    assert fault(Request("POST", "/v1/search", b'{"' + written + b'": 1}'), Answered(400, body)) == ""
    assert fault(Request("POST", "/v1/search", b"{}"), Answered(400, body))


WIRED = {
    "no HTTP": b"\0\1\2\3" * 20 + b"\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a wrong version": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "no length": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\n\r\n{}",
    "a negative length": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n{}",
    "two lengths": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length and chunks": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a huge length": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999999999999999\r\n\r\n{}",
    "a huge chunk": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"fffffffffffffffff\r\n",
    "no size of a chunk": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}",
    "half of a body": b'POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"queries": ["a',
    "half of the headers": b"POST /v1/search HTTP/1.1\r\nHost: localho",
    "a header without a name": b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    "a header on two lines": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n",
    "a body that is longer": b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}" + b"x" * 300,
    "an upgrade": b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
}


@pytest.mark.parametrize("case", WIRED)
def test_bytes_that_are_not_a_request(url, wire, case):
    answered = wire.send(WIRED[case], ends=True)
    assert answered.status in (0, 200, 400, 403, 404, 408, 413, 426), answered
    assert wire.send(Request("GET", "/health/ready").wire(), method="GET").status == 200


@pytest.mark.full
def test_a_body_shorter_than_its_length_is_not_waited_for(hasty):
    body = json.dumps(ROUTES[0][1]).encode()[:50]

    def ask(path):
        with closing(Wire(hasty)) as wire:
            return wire.send(Request("POST", path, body, {"Content-Length": "90000"}).wire())

    with ThreadPoolExecutor(len(ROUTES)) as pool:
        answers = list(pool.map(ask, [path for path, _ in ROUTES]))
    assert [one.status for one in answers] == [408] * len(ROUTES)
    assert all(b"did not arrive within 0.5 s" in one.body for one in answers)


def connected(url):
    host, port = re.findall(r"//(.*):(\d+)", url)[0]
    return socket.create_connection((host, int(port)), timeout=60)


def send_until_cut_off(slow, data, pause):
    while True:
        slow.sendall(data)
        time.sleep(pause)


@pytest.mark.full
def test_headers_that_drip_are_cut_off(hasty):
    with connected(hasty) as slow:
        slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises(ConnectionError):
            send_until_cut_off(slow, b"X-A: b\r\n", 0.02)


@pytest.mark.full
def test_a_client_that_reads_nothing_is_cut_off(hasty):
    """Its answers fill the system's buffers, and then the server's."""
    body = json.dumps({"queries": ["What is far from Lima?"] * 40, "k": 12}).encode()
    one = Request("POST", "/v1/search", body).wire()
    with connected(hasty) as slow:
        slow.sendall(200 * one)  # answers of 14 MB
        with pytest.raises(ConnectionError):
            send_until_cut_off(slow, b"\r\n", 0.05)
    with closing(Wire(hasty)) as wire:
        assert wire.send(one).status == 200
    assert waiting(hasty) == 0


def test_many_connections_that_wait_hold_nobody(url, wire):
    half = [connected(url) for _ in range(50)]
    try:
        for one in half:
            one.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        assert wire.send(Request("POST", "/v1/search", json.dumps(ROUTES[0][1]).encode()).wire()).status == 200
    finally:
        for one in half:
            one.close()


@pytest.mark.parametrize("size", [-1, 3, 9, 2**31, 2**64])
def test_binary_tensors_of_forged_lengths(wire, size):
    texts = {"name": "texts", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": size}}
    head = json.dumps({**INFER, "inputs": [texts]}).encode()
    for tail in (b"", b"\xff" * 9, struct.pack("<I", 2**31) + b"abcde", struct.pack("<I", 5) + b"\xff\xfe\xfd\xfc\xfb"):
        for length in (len(head), len(head) + 5, 0, 10**30):
            headers = {"Inference-Header-Content-Length": str(length), "Content-Type": "application/octet-stream"}
            request = Request("POST", "/v2/models/cities/infer", head + tail, headers)
            answered = wire.send(request.wire())
            assert answered.status == 400
            assert not fault(request, answered)


@pytest.mark.full
def test_requests_that_the_description_allows_and_forbids(url):
    """Schemathesis draws requests from /openapi.json, for every route."""
    schemathesis = pytest.importorskip("schemathesis", reason="it draws requests from /openapi.json")
    import hypothesis

    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    tried = 0
    for operation in schema.get_all_operations():

        @hypothesis.given(case=operation.ok().as_strategy())
        @hypothesis.settings(max_examples=50, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
        def ask(case):
            answer = case.call(timeout=60)
            assert answer.status_code < 500 or answer.status_code == 504, answer.content
            if answer.status_code >= 400:
                assert answer.json()

        ask()
        tried += 1
    assert tried >= 14
