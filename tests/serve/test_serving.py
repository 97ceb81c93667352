"""A server from its start to its end: what it says of itself, overload, deadlines, slow clients, the command."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import httpx
import processes
import pytest
from serve.served import Letters, configured, running, small_index, until
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

SEARCH = {"queries": ["What is far from Ankara?"]}


class Waiting(Letters):
    """An encoder that waits until it is let go, after the searches of the start."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Event()

    def encode_queries(self, texts):
        self.begun.set()
        assert self.go.wait(60)
        return super().encode_queries(texts)


@pytest.fixture
def held(path):
    """A server whose encoder waits: its address, the encoder, and a pool of callers."""
    encoder = Waiting()
    text = "[limits]\nqueue_requests = 2\nconnections = 50\n"
    with running(configured(path, text), {"cities": encoder}) as url, ThreadPoolExecutor(8) as pool:
        try:
            yield url, encoder, pool
        finally:
            encoder.go.set()


def post(url, **more):
    return httpx.post(f"{url}/v1/search", json=SEARCH | more, timeout=60)


def metric(url, name):
    found = re.findall(rf"^{re.escape(name)} (.*)$", httpx.get(f"{url}/metrics").text, flags=re.MULTILINE)
    return float(found[0]) if found else 0.0


def test_a_deadline_that_passes_in_the_queue_or_in_the_kernel_is_504(held):
    url, encoder, pool = held
    assert 'hopfuse_queries_total{index="cities"} 0.0' in httpx.get(f"{url}/metrics").text  # none of the warm-up
    assert metric(url, "hopfuse_batch_queries_count") == 0
    several = [pool.submit(post, url, timeout_ms=600)]
    encoder.begun.wait()
    several.append(pool.submit(post, url, timeout_ms=600))  # for the second worker
    until(lambda: metric(url, 'hopfuse_request_seconds_count{stage="read"}') == 2)
    until(lambda: metric(url, "hopfuse_queue_requests") == 0)
    queued = post(url, timeout_ms=400)  # a busy machine takes long for a batch
    assert (queued.status_code, queued.json()["error"]["code"]) == (504, "timeout")
    assert [one.result().status_code for one in several] == [504, 504]
    assert metric(url, "hopfuse_queue_requests") == 0
    before = metric(url, 'hopfuse_queries_total{index="cities"}')
    encoder.go.set()
    assert post(url).status_code == 200
    # Those of the workers, and this one.
    until(lambda: metric(url, 'hopfuse_queries_total{index="cities"}') == before + 3)


def test_large_bodies_at_a_time_are_all_answered(path):
    many = {"queries": SEARCH["queries"] * 200}
    padded = json.dumps(many) + " " * 2**16
    with running(configured(path)) as url, ThreadPoolExecutor(8) as pool:
        kind = {"content-type": "application/json"}
        asked = [
            pool.submit(httpx.post, f"{url}/v1/search", content=padded, headers=kind, timeout=60) for _ in range(8)
        ]
        one = post(url).json()["results"]
        assert [answer.result().json()["results"] for answer in asked] == [one * 200] * 8


def test_a_request_whose_client_was_watched_is_not_in_a_circle_of_references(held):
    url, encoder, pool = held
    gc.collect()
    gc.disable()
    try:
        asked = pool.submit(post, url, timeout_ms=60_000)
        encoder.begun.wait()
        threading.Event().wait(0.3)  # until its client is watched
        requests = weakref.WeakSet(one for one in gc.get_objects() if isinstance(one, RequestResponseCycle))
        assert requests
        encoder.go.set()
        assert asked.result().status_code == 200
        until(lambda: not requests, 30)
    finally:
        gc.enable()


def test_a_full_queue_is_429_with_retry_after_and_health_answers(held):
    url, encoder, pool = held
    waiting = [pool.submit(post, url, timeout_ms=60_000)]
    encoder.begun.wait()
    waiting.append(pool.submit(post, url, timeout_ms=60_000))  # for the second worker, which takes all that wait
    until(lambda: metric(url, 'hopfuse_request_seconds_count{stage="read"}') == 2)
    until(lambda: metric(url, "hopfuse_queue_requests") == 0)
    waiting += [pool.submit(post, url, timeout_ms=60_000) for _ in range(2)]
    until(lambda: metric(url, "hopfuse_queue_requests") == 2)
    refused = post(url)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "overloaded")
    assert int(refused.headers["retry-after"]) >= 1
    assert httpx.get(f"{url}/health/live").json() == {"status": "ok"}
    host, port = re.findall(r"//(.*):(\d+)", url)[0]
    with socket.create_connection((host, int(port)), timeout=60) as early:  # it is refused before its body is read
        early.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
        assert b" 429 " in early.recv(1000).partition(b"\r\n")[0]
    encoder.go.set()
    assert [one.result().status_code for one in waiting] == [200] * 4
    assert metric(url, 'hopfuse_refusals_total{code="overloaded"}') == 2


def test_a_request_that_is_late_is_refused_before_it_is_decoded(held):
    url, encoder, pool = held
    first = pool.submit(post, url, timeout_ms=60_000)
    encoder.begun.wait()
    threading.Event().wait(0.05)  # a batch has taken less until now, but not this one
    refused = post(url, timeout_ms=1, queries=[{"vector": "none"}])
    assert refused.status_code in (429, 504)
    assert post(url, timeout_ms=0).status_code == 400
    assert post(url, timeout_ms=60_000, queries=[{"vector": "none"}]).status_code == 400
    encoder.go.set()
    assert first.result().status_code == 200


def test_a_client_that_leaves_leaves_the_queue(held):
    url, encoder, pool = held
    first = pool.submit(post, url, timeout_ms=60_000)
    encoder.begun.wait()
    with pytest.raises(httpx.ReadTimeout), httpx.Client(timeout=httpx.Timeout(60, read=0.05)) as client:
        client.post(f"{url}/v1/search", json=SEARCH | {"timeout_ms": 60_000})
    until(lambda: metric(url, "hopfuse_queue_requests") == 0)
    encoder.go.set()
    assert first.result().status_code == 200


def test_a_stopping_server_answers_the_requests_it_has_begun(path):
    encoder = Waiting()
    with ThreadPoolExecutor(1) as pool:
        with running(configured(path), {"cities": encoder}) as url:
            asked = pool.submit(post, url, timeout_ms=60_000)
            encoder.begun.wait()
            threading.Timer(0.05, encoder.go.set).start()
        assert asked.result().status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health/live")


def test_slow_headers_and_slow_bodies_are_cut_off(path):
    text = "[limits]\nheader_seconds = 0.2\nbody_seconds = 0.2\n"
    with running(configured(path, text)) as url:
        host, port = re.findall(r"//(.*):(\d+)", url)[0]
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            assert slow.recv(100) == b""
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            assert b" 408 " in slow.recv(1000).partition(b"\r\n")[0]
        assert post(url).status_code == 200


def test_several_indexes_and_their_description(tmp_path):
    for name, extra in (("a", 0), ("b", 3)):
        small_index(ids=name, extra=extra).save(tmp_path / name)
    indexes = {name: {"path": str(tmp_path / name)} for name in "ab"}
    indexes["b"]["recipe"] = "phase-graph"
    with running(configured("", indexes=indexes, request_options=False)) as url:
        listed = httpx.get(f"{url}/v1/indexes").json()["indexes"]
        assert [(one["name"], one["passages"], one["recipe"], one["seq"]) for one in listed] == [
            ("a", 12, "guided-walk", 0),
            ("b", 15, "phase-graph", 0),
        ]
        assert post(url).json()["results"][0]["hits"][0]["id"].startswith("a")
        assert post(url, index="b", k=15).json()["results"][0]["hits"][0]["id"].startswith("b")
        refused = post(url, options={"damping": 0.3})
        assert (refused.status_code, refused.json()["error"]["field"]) == (403, "options")
        assert post(url, recipe="guided-walk").status_code == 200
        assert 'hopfuse_index_seq{index="b"} 0.0' in httpx.get(f"{url}/metrics").text
        assert metric(url, "hopfuse_batch_queries_count") >= 2


@pytest.mark.full
def test_the_description_is_openapi(url):
    validate = pytest.importorskip("openapi_spec_validator", reason="it validates /openapi.json").validate
    validate(httpx.get(f"{url}/openapi.json").json())


def test_the_description_has_the_routes(url):
    described = httpx.get(f"{url}/openapi.json").json()
    assert {"/v1/search", "/v1/indexes", "/health/live", "/health/ready", "/metrics"} <= set(described["paths"])
    search = described["paths"]["/v1/search"]["post"]
    assert {"200", "400", "429", "504"} <= set(search["responses"])
    query = described["components"]["schemas"]["QueryIn"]
    assert set(query["properties"]) == {"text", "vector", "vector_base64", "entities", "allow"}


def test_the_command_serves_until_it_is_told_to_stop(path, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "serve.toml"
    config.write_text(f"port = {port}\n[limits]\nk = 12\n")
    args = [f"cities={path}", "--config", config, "--threads", "1"]
    command = [sys.executable, "-m", "hopfuse", "serve", *map(str, args)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stderr)
            assert any(f"http://127.0.0.1:{port}" in line for line in lines)
            url = f"http://127.0.0.1:{port}"
            until(lambda: httpx.get(f"{url}/health/ready").status_code == 200)
            vector = [1.0] * 8
            body = {"queries": [{"text": "What of Lima?", "vector": vector}], "k": 3}
            assert httpx.post(f"{url}/v1/search", json=body).json()["results"][0]["hits"]
            refused = httpx.post(f"{url}/v1/search", json={"queries": ["What of Lima?"]}).json()["error"]
            # Only the tests know the encoder "letters".
            assert (refused["code"], refused["field"]) == ("missing", "queries[0].vector")
            assert httpx.post(f"{url}/v1/search", json=body | {"k": 13}).status_code == 400
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
        assert process.wait() in (0, -signal.SIGTERM), rest
    assert os.path.isdir(path)


def test_an_invalid_server_setting_is_one_line_and_nothing_listens(path, tmp_path):
    for args, code, field in (
        ((tmp_path / "none",), "missing", "directory"),
        ((), "missing", "indexes"),
        ((path, "--encoder", "nope"), "choice", "encoder"),
        ((path, path), "duplicate", "indexes"),
        ((path, "--host", "0.0.0.0"), "forbidden", "host"),
    ):
        command = [sys.executable, "-m", "hopfuse", "serve", *map(str, args), "--port", "0"]
        given = os.environ | {"HOPFUSE_ERRORS": "json"}
        done = processes.run(command, capture_output=True, text=True, check=False, env=given)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        error = json.loads(done.stderr)["error"]
        assert (error["code"], error["field"]) == (code, field)
