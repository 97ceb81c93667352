"""Faults stay where they belong: encoders that hang, fail or exit, dead threads, and a server's end beside them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import hopfuse as hf
import httpx
import msgspec
import processes
import pytest
from hopfuse.errors import InputError
from hopfuse.serve import BatchTimes, ServeConfig, Service, new_key
from refusals import refused
from serve.served import TEXTS, configured, running, small_index, until
from serve.test_serving import metric

from bench.hostile import encoders as attack

ROOT = Path(__file__).parents[2]


@contextmanager
def triggered(path, limits="", **changes):
    """A server whose encoder does what texts say, and the encoder; calls that hang end after the server."""
    encoder = attack.Triggered()
    try:
        with running(
            configured(path, f"[limits]\ndrain_seconds = 0.1\n{limits}", **changes), {"cities": encoder}
        ) as url:
            yield url, encoder
    finally:
        encoder.go.set()


@pytest.mark.parametrize("fault", [attack.FAIL, attack.EXIT, attack.INTERRUPT, attack.NAN, attack.DIM])
def test_a_text_on_which_the_encoder_fails_fails_alone(path, fault, caplog):
    with triggered(path) as (url, encoder), ThreadPoolExecutor(3) as pool:
        held = [pool.submit(attack.search, url, attack.HANG)]
        until(lambda: encoder.hung == 1)
        held.append(pool.submit(attack.search, url, attack.HEALTHY))  # it waits for its turn at the encoder
        until(lambda: metric(url, 'hopfuse_request_seconds_count{stage="read"}') == 2)
        until(lambda: metric(url, "hopfuse_queue_requests") == 0)
        together = pool.submit(attack.beside, url, fault)
        until(lambda: metric(url, "hopfuse_queue_requests") == 16)
        encoder.go.set()
        (status, bad), others = together.result()
        assert [one.result()[0] for one in held] == [200, 200]
        assert (status, bad["error"]["code"]) == (500, "encoder")
        assert "a text said so" not in json.dumps(bad)
        assert others == {200: 15}
        assert metric(url, 'hopfuse_encoder_failures_total{reason="failed"}') >= 2  # in its batch, and alone
        assert metric(url, "hopfuse_threads_replaced_total") == 0
        assert attack.search(url, attack.HEALTHY)[0] == 200
    logged = [one for one in caplog.records if one.name == "hopfuse.serve" and one.exc_info]
    assert len(logged) == 1
    assert logged[0].exc_info[1].__cause__ is not None


class Choosy(attack.Triggered):
    """Says that a text has no vector, as encoders of this package do."""

    def encode_queries(self, texts):
        for at, text in enumerate(texts):
            if "nothing" in text:
                raise InputError("zero", f"texts[{at}]", "the vector of {field} is zero")
        return super().encode_queries(texts)


def test_a_text_without_a_vector_is_the_clients_fault(path):
    vector = {"text": "Where is Lima?", "vector": [1.0] * 8}
    with running(configured(path), {"cities": Choosy()}) as url:
        assert attack.search(url, " ")[0] == 400
        status, said = attack.post(url, {"queries": [attack.HEALTHY, vector, "Say nothing."]})
        assert (status, said["error"]["code"], said["error"]["field"]) == (400, "zero", "queries[2].text")
        assert metric(url, 'hopfuse_encoder_failures_total{reason="failed"}') == 0


def test_hung_calls_occupy_threads_and_when_all_hang_texts_are_refused_at_once(path):
    limits = "encoder_seconds = 0.2\nencoder_threads = 3\n"
    with triggered(path, limits) as (url, encoder):
        assert attack.hang_all(url, 2) == [503, 503]
        assert attack.search(url, attack.HEALTHY)[0] == 200
        assert attack.status(url)[0] == 200
        assert metric(url, "hopfuse_encoder_hung") == 2
        assert attack.hang_all(url, 1) == [503]

        batches = metric(url, 'hopfuse_request_seconds_count{stage="queued"}')
        status, said = attack.search(url, attack.HEALTHY)
        assert (status, said["error"]["code"], said["error"]["values"]["late"]) == (503, "unavailable", 3)
        both = [attack.HEALTHY, {"vector": [1.0] * 8, "entities": []}]
        assert attack.post(url, {"queries": both})[0] == 503
        assert metric(url, 'hopfuse_request_seconds_count{stage="queued"}') == batches
        assert encoder.hung == 3
        assert [attack.by_vector(url) for _ in range(8)] == [200] * 8

        status, said = attack.status(url)
        assert (status, said["error"]["code"], said["error"]["values"]["late"]) == (503, "unavailable", 3)
        assert attack.status(url, "/v2/health/ready")[0] == 503
        assert attack.status(url, "/health/live")[0] == 200

        encoder.go.set()
        until(lambda: attack.status(url)[0] == 200)
        until(lambda: metric(url, "hopfuse_encoder_hung") == 0)
        assert attack.search(url, attack.HEALTHY)[0] == 200
        assert metric(url, 'hopfuse_encoder_failures_total{reason="late"}') == 3


def test_vectors_do_not_wait_for_texts(path):
    limits = "encoder_seconds = 600.0\nmax_timeout_ms = 600000\n"
    with triggered(path, limits) as (url, encoder), ThreadPoolExecutor(12) as pool:
        hanging = [pool.submit(attack.search, url, f"{attack.HANG} {at}") for at in range(8)]
        until(lambda: encoder.hung == 1)
        until(lambda: metric(url, 'hopfuse_request_seconds_count{stage="read"}') == 8)
        beside = [pool.submit(attack.by_vector, url) for _ in range(8)]
        assert [one.result() for one in beside] == [200] * 8
        assert encoder.hung == 1  # the others wait for their turn: it may not be safe for threads
        assert not any(one.done() for one in hanging)
        encoder.go.set()
        assert [one.result()[0] for one in hanging] == [200] * 8


class Slow(attack.Triggered):
    """Takes longer than a thread waits for it, until ``go``: 80 calls take longer than a vector's timeout."""

    calls = 0

    def encode_queries(self, texts):
        self.calls += 1
        self.go.wait(0.15)
        return super().encode_queries(texts)


def test_vectors_are_not_refused_because_texts_wait_for_a_slow_encoder(path):
    encoder, vector = Slow(), {"queries": [{"vector": [1.0] * 8, "entities": []}], "timeout_ms": 8000}
    limits = "[limits]\nbatch = 1\n"
    with running(configured(path, limits), {"cities": encoder}) as url, ThreadPoolExecutor(80) as pool:
        texts = [pool.submit(attack.search, url, attack.HEALTHY) for _ in range(80)]
        until(lambda: encoder.calls > 12)  # how long they take is known
        answers = []
        while encoder.calls < 20:
            answers.append(attack.post(url, vector)[0])
        encoder.go.set()
        assert [one.result()[0] for one in texts] == [200] * 80
    assert 200 in answers
    assert 429 not in answers


def test_answers_have_the_same_bits_whatever_they_wait_for(path):
    """A request of texts and vectors is searched in two parts, and equals its queries one by one."""
    queries = [attack.HEALTHY, {"vector": [1.0, 2, 3, 4, 5, 6, 7, 8], "entities": ["Lima"]}, "Where is Lima?"]
    with triggered(path) as (url, _):
        whole = attack.post(url, {"queries": queries})[1]["results"]
        assert whole == [attack.post(url, {"queries": [one]})[1]["results"][0] for one in queries]


def test_a_search_that_ends_its_thread_is_answered_and_the_thread_replaced(path, monkeypatch):
    search = hf.Retriever.search

    def dying(self, texts, **given):
        if any("thread" in text for text in texts or ()):
            raise SystemExit(3)
        return search(self, texts, **given)

    monkeypatch.setattr(hf.Retriever, "search", dying)
    with triggered(path) as (url, _):
        for _ in range(6):  # more than there are threads
            status, said = attack.search(url, "Which thread dies?")
            assert (status, said["error"]["code"]) == (500, "failed")
        assert attack.search(url, attack.HEALTHY)[0] == 200
        until(lambda: metric(url, "hopfuse_threads_replaced_total") == 6)


@pytest.mark.parametrize(("text", "answer"), [(attack.EXIT, (500, "encoder")), (attack.HANG, (503, "unavailable"))])
def test_a_change_whose_text_the_encoder_fails_on_fails_alone(tmp_path, text, answer):
    small_index().save(tmp_path / "own")
    indexes = {"cities": {"path": str(tmp_path / "own"), "writable": True}}
    with triggered("", "encoder_seconds = 0.2\n", indexes=indexes) as (url, _):
        body = {"passages": [{"id": "new", "text": text}], "timeout_ms": 60_000}
        status, said = attack.post(url, body, "/v1/passages")
        assert (status, said["error"]["code"]) == answer
        body["passages"][0]["text"] = "Lima lies by the sea."
        assert attack.post(url, body, "/v1/passages")[0] == 200


# ---- The end ---------------------------------------------------------------------------------------------------------


@contextmanager
def process(path, *limits, first=""):
    """A server in a process of its own, with an encoder that does what texts say."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = f"{first}\nimport sys\nfrom bench.hostile.encoders import main\nmain(sys.argv[1:])"
    command = [sys.executable, "-c", script, path, *limits]
    environment = os.environ | {"PORT": str(port)}
    with processes.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as started:
        try:
            url = f"http://127.0.0.1:{port}"
            lines = iter(started.stderr)
            assert any(url in line for line in lines)
            until(lambda: httpx.get(f"{url}/health/ready").status_code == 200)
            yield url, started
        finally:
            started.kill()


def read_all(connection):
    """Return the status and the body of the answer on a connection that the server closes."""
    data = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_a_server_ends_while_its_encoder_hangs_and_every_open_request_is_answered_in_json(path):
    limits = ("drain_seconds=2.0", "encoder_seconds=600.0", "max_timeout_ms=600000", "body_seconds=600.0")
    with process(path, *limits) as (url, started), ThreadPoolExecutor(8) as pool:
        hanging = [pool.submit(attack.search, url, f"{attack.HANG} {at}") for at in range(5)]
        waiting = pool.submit(attack.search, url, attack.HEALTHY, at_least=99)
        host, port = re.findall(r"//(.*):(\d+)", url)[0]
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            until(lambda: metric(url, 'hopfuse_request_seconds_count{stage="read"}') == 5)
            until(lambda: metric(url, 'hopfuse_seq_waiting{index="index"}') == 1)
            started.send_signal(signal.SIGTERM)
            answers = [read_all(slow), waiting.result(), *(one.result() for one in hanging)]
        for status, said in answers:
            assert (status, said["error"]["code"]) == (503, "unavailable")
        assert started.wait() == -signal.SIGTERM


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/search", {"queries": [attack.HANG]}),
        ("/v1/passages", {"passages": [{"id": "new", "text": attack.HANG}]}),
        ("/retrieval", {"knowledge_id": "cities", "query": attack.HANG, "retrieval_setting": {"top_k": 3}}),
        (
            "/v2/models/cities/infer",
            {"inputs": [{"name": "texts", "datatype": "BYTES", "shape": [1], "data": [attack.HANG]}]},
        ),
        (
            "/mcp",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "search", "arguments": {"text": attack.HANG}},
            },
        ),
    ],
)
def test_a_request_of_any_protocol_is_answered_in_json_at_the_end(tmp_path, path, body):
    if path == "/mcp":
        pytest.importorskip("mcp", reason="the package of the protocol")
    small_index().save(tmp_path)
    indexes = {"cities": {"path": str(tmp_path), "writable": True}}
    limits = "timeout_ms = 600000\nmax_timeout_ms = 600000\nencoder_seconds = 600.0\n"
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    with ThreadPoolExecutor(1) as pool:
        with triggered("", limits, indexes=indexes, mcp=True) as (url, encoder):
            asked = pool.submit(httpx.post, f"{url}{path}", json=body, headers=headers, timeout=600)
            until(lambda: encoder.hung == 1 or asked.done())
        answer = asked.result()
    assert answer.status_code == 503, answer.text
    said = answer.json()
    assert answer.headers["retry-after"] == "1"
    assert (said["error"]["code"] if isinstance(said.get("error"), dict) else said["code"]) == "unavailable"


def test_a_process_ends_whatever_hangs_in_it(path):
    hangs = (
        "import threading\nfrom hopfuse.serve import Batcher\nBatcher.refuse = lambda self: threading.Event().wait()"
    )
    with process(path, "drain_seconds=0.5", first=hangs) as (url, started):
        assert attack.by_vector(url) == 200
        started.send_signal(signal.SIGTERM)
        assert started.wait() == 1
        assert "CRITICAL" in started.stderr.read()


# ---- Keys, changes and estimates -------------------------------------------------------------------------------------


def test_a_key_that_sees_no_index_is_refused_in_the_configuration_and_by_the_service(path):
    key, digest = new_key()
    tables = {"indexes": {"cities": {"path": path}}, "keys": {"team": {"sha256": digest, "indexes": []}}}
    with refused(InputError, "empty", "keys.team.indexes"):
        ServeConfig.read("", tables)
    config = configured(path, keys={"team": {"sha256": digest}})
    own = msgspec.structs.replace(config.keys["team"], indexes=())
    with running(msgspec.structs.replace(config, keys={"team": own})) as url:
        headers = {"authorization": f"Bearer {key}"}
        answer = httpx.post(f"{url}/v1/search", json={"queries": ["Lima"]}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        assert httpx.get(f"{url}/v1/indexes", headers=headers).json() == {"indexes": []}


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("replace", [False, True])
def test_two_passages_of_a_change_with_one_id_are_named(tmp_path, words, replace):
    rows = [{"id": f"p{at}", "text": text} for at, text in enumerate(TEXTS)]
    made = hf.Index.build(rows, reader="words", encoder=attack.Triggered()) if words else small_index()
    made.save(tmp_path)
    indexes = {"cities": {"path": str(tmp_path), "writable": True}}
    with triggered("", indexes=indexes) as (url, _):
        given = [{"id": id, "text": f"{id} is a river."} for id in ("a", "p1", "a")]
        status, said = attack.post(url, {"passages": given, "replace": replace}, "/v1/passages")
        assert (status, said["error"]["code"], said["error"]["field"]) == (400, "duplicate", "passages[2].id")
        assert "passages[0]" in said["error"]["values"].values()
        given[0]["id"] = 7
        status, said = attack.post(url, {"passages": given, "replace": replace}, "/v1/passages")
        assert (status, said["error"]["code"], said["error"]["field"]) == (400, "type", "passages[1].id")


EDGE = {"src": ["passage", "p1"], "dst": ["entity", "Ankara"], "type": "context"}
LONG = "x" * 90_000
CHANGES = [
    *({"passages": [{"id": id, "text": "Lima."}]} for id in ("", LONG, "a\0b", 5, 2**63, 2**70, 1.5, True)),
    *({"passages": [{"id": "new", "text": text}]} for text in ("", " ", "a\0b", LONG)),
    *(
        {"passages": [{"id": "new", "text": "Lima.", "metadata": one}]}
        for one in ({"number": 2**70}, {"": 1}, {"a": {"b": [1]}})
    ),
    *({"passages": [{"id": "new", "text": "Lima.", "vector": one}]} for one in ([0] * 8, [1e308] * 8, [1])),
    {"passages": [{"id": "new", "text": "Lima.", "entities": ["Oslo", "Oslo", ""], "facts": [["", "", ""]] * 2}]},
    *({"entities": one} for one in (["Oslo", "Oslo"], ["Oslo", "OSLO"], [""], [LONG])),
    {"entities": [{"name": "Oslo", "vector": [at] * 8} for at in (1, 2)]},
    *(
        {"aliases": one}
        for one in ({"Ankara": ["A", "A"]}, {"Ankara": [""]}, {"Nowhere": ["X"]}, {"Ankara": ["Ankara"]})
    ),
    *(
        {"merge": one}
        for one in ({"Ankara": ["Oslo"]}, {"Ankara": ["Ankara"]}, {"Ankara": []}, {"Nowhere": ["X"]}, {"A": [LONG, ""]})
    ),
    *(
        {"edges": [EDGE | one] * 2}
        for one in ({}, {"type": LONG}, {"weight": 0}, {"weight": 1e308}, {"stated_by": 2**70})
    ),
    {"edges": [EDGE | {"src": ["passage", 2**70]}]},
    *(
        {"facts": [one] * 2}
        for one in (["Ankara", "r", "Fes", "p1"], ["Ankara", LONG, "Fes", "p1"], ["", "", "", "p1"])
    ),
]


@pytest.mark.parametrize("words", [False, True])
def test_no_change_is_a_fault_of_the_server(tmp_path, words):
    rows = [{"id": f"p{at}", "text": text} for at, text in enumerate(TEXTS)]
    made = hf.Index.build(rows, reader="words", encoder=attack.Triggered()) if words else small_index()
    made.save(tmp_path)
    indexes = {"cities": {"path": str(tmp_path), "writable": True}}
    with triggered("", indexes=indexes) as (url, _):
        wrong = {}
        for at, body in enumerate(CHANGES):
            for more in ({}, {"replace": True}):
                status, said = attack.post(url, body | more, "/v1/passages")
                if status not in (200, 400):
                    wrong[at] = said
        assert wrong == {}
        assert attack.search(url, attack.HEALTHY)[0] == 200


#: Seconds that the first search of a batch's size takes longer in a test.
COLD = 0.7


def test_the_first_estimate_is_that_of_warm_searches(path, monkeypatch):
    search, ran, kept = hf.Retriever.search, list[int](), list[tuple[int, float]]()

    def cold_at_first(self, texts, **given):
        if len(texts) not in ran:
            time.sleep(COLD)
        ran.append(len(texts))
        return search(self, texts, **given)

    class Kept(BatchTimes):
        def add(self, size, seconds, **more):
            kept.append((size, seconds))
            super().add(size, seconds, **more)

    monkeypatch.setattr(hf.Retriever, "search", cold_at_first)
    monkeypatch.setattr("hopfuse.serve.costs.BatchTimes", Kept)
    with running(configured(path, "[limits]\nbatch = 8\n")) as url:
        assert [size for size, _ in kept] == [1, 8]
        assert ran == [1, 1, 8, 8]
        assert sum(seconds for _, seconds in kept) < COLD
        body = {"queries": ["Lima"], "timeout_ms": round(1000 * COLD) - 1}
        assert httpx.post(f"{url}/v1/search", json=body, timeout=60).status_code != 429
    assert isinstance(Service(configured(path)).batcher.costs.plain, Kept)
