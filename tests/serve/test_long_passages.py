"""Answers with long passages: their bytes are counted before the passages are read, until a client has read them."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.serve import new_key
from serve.served import DIM, ENCODERS, configured, running, until
from serve.test_bounds import ARROW, CALL, PLAIN, busy_desk, metric

from bench.hostile import bounds

COUNT, LENGTH = 20, 500_000
QUERY = {"text": "Ankara", "vector": [1.0] * DIM}
FAR = {"timeout_ms": 60_000}


def asked(k=COUNT, queries=1, **more):
    """A search of the longest passages."""
    return {"queries": [QUERY] * queries, "k": k, **FAR, **more}


def called(k=COUNT):
    return CALL | {"params": {"name": "search", "arguments": {"text": "Ankara", "k": k}}}


def dify(k=COUNT):
    return {"knowledge_id": "cities", "query": "Ankara", "retrieval_setting": {"top_k": k}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An index of long texts, with metadata that is long too."""
    folder = tmp_path_factory.mktemp("long")
    rows = [
        {"id": f"p{at:02}", "text": f"Ankara {at} " + "a" * LENGTH, "metadata": {"note": "b" * 100_000, "number": at}}
        for at in range(COUNT)
    ]
    hf.Index.build(passages=rows, vectors=np.ones((COUNT, DIM), np.float32), encoder=ENCODERS["cities"]).save(folder)
    return str(folder)


@pytest.fixture
def long_reads(monkeypatch):
    """The lengths of long strings that are read from an index."""
    kind, found, lock = type(hf.Index.build(passages=[{"text": "a"}]).texts), [], threading.Lock()
    original = kind.__getitem__

    def spied(column, item):
        value = original(column, item)
        if isinstance(value, str) and len(value) >= 50_000:
            with lock:
                found.append(len(value))
        return value

    monkeypatch.setattr(kind, "__getitem__", spied)
    return found


def sent(url, kind, k=COUNT):
    """The answer to a request for k long passages."""
    if kind == "page":
        return httpx.get(f"{url}/v1/passages", params={"limit": k}, timeout=600)
    if kind == "passage":
        return httpx.get(f"{url}/v1/passages/p03", timeout=600)
    path, body, headers = {
        "json": ("/v1/search", asked(k), PLAIN),
        "text alone": ("/v1/search", asked(k, fields=["text"]), PLAIN),
        "metadata alone": ("/v1/search", asked(k, fields=["metadata"]), PLAIN),
        "arrow": ("/v1/search", asked(k), PLAIN | {"accept": ARROW["content-type"]}),
        "dify": ("/retrieval", dify(k), PLAIN),
        "mcp": ("/mcp", called(k), PLAIN),
    }[kind]
    return httpx.post(f"{url}{path}", json=body, headers=headers, timeout=600)


def error_of(answer):
    """The code of an error, and the limit that it names."""
    given = answer.json()
    if "result" in given:
        assert given["result"]["isError"]
        given = given["result"]["structuredContent"]
    error = given if "code" in given else given["error"]
    return error["code"], error.get("values", {}).get("limit")


KINDS = ["json", "text alone", "metadata alone", "arrow", "dify", "mcp", "page", "passage"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_takes_too_much_is_refused_before_passages_are_read(folder, long_reads, kind):
    if kind == "mcp":
        pytest.importorskip("mcp", reason="the package of the protocol")
    if kind == "arrow":
        pytest.importorskip("pyarrow", reason="it writes Arrow streams")
    limits = {"key_bytes": 90_000, "tool_answer_bytes": 10**9}
    with running(configured(folder, limits=limits, mcp=kind == "mcp")) as url:
        del long_reads[:]  # while it was warmed up
        answer = sent(url, kind)
        assert error_of(answer)[0] == "limit"
        assert error_of(answer)[1] in ("limits.key_bytes", None)  # Dify's errors have no values
        assert long_reads == []
        assert metric(url, "hopfuse_queue_bytes") == 0


def test_many_queries_for_long_passages_are_refused_with_what_they_would_take(folder, long_reads):
    with running(configured(folder)) as url:
        del long_reads[:]
        refused = httpx.post(f"{url}/v1/search", json=asked(queries=100), timeout=600)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["values"]["limit"]) == (400, "limit", "limits.key_bytes")
        assert 100 * COUNT * 600_000 < error["values"]["given"] < 100 * COUNT * 601_000
        assert long_reads == []


def test_ids_and_scores_of_long_passages_are_answered(folder, long_reads):
    with running(configured(folder, limits={"key_bytes": 300_000})) as url:
        del long_reads[:]
        answer = httpx.post(f"{url}/v1/search", json=asked(queries=100, fields=["title"]), timeout=600)
        assert answer.status_code == 200, answer.text
        assert [len(one["hits"]) for one in answer.json()["results"]] == [COUNT] * 100
        assert long_reads == []


@pytest.mark.parametrize("binary", [False, True])
def test_long_ids_are_counted_before_they_are_read(tmp_path, long_reads, binary):
    rows = [{"id": f"p{at:02}{'i' * 60_000}", "text": "Ankara"} for at in range(5)]
    vectors = np.ones((len(rows), DIM), np.float32)
    hf.Index.build(passages=rows, vectors=vectors, encoder=ENCODERS["cities"]).save(tmp_path)
    texts = {"name": "texts", "shape": [3], "datatype": "BYTES", "data": ["Ankara"] * 3}
    body = {"inputs": [texts], "parameters": {"k": 5, "binary_data_output": binary}}
    for most, status in ((500_000, 400), (2_000_000, 200)):
        with running(configured(str(tmp_path), limits={"key_bytes": most})) as url:
            del long_reads[:]
            answer = httpx.post(f"{url}/v2/models/cities/infer", json=body, timeout=600)
            assert answer.status_code == status
            assert (answer.json()["code"] == "limit" and long_reads == []) if status == 400 else long_reads


def test_equal_texts_are_found_by_their_lengths_first(tmp_path, long_reads):
    lengths = [*range(60_000, 60_010), 70_000, 70_000, 70_000]
    texts = ["a" * length for length in lengths[:-1]] + ["b" * lengths[-1]]
    rows = [{"id": f"p{at:02}", "text": text} for at, text in enumerate(texts)]
    vectors = np.ones((len(rows), DIM), np.float32)
    hf.Index.build(passages=rows, vectors=vectors, encoder=ENCODERS["cities"]).save(tmp_path)
    with running(configured(str(tmp_path))) as url:
        del long_reads[:]
        body = asked(k=len(rows), per_document=1, fields=[])
        answer = httpx.post(f"{url}/v1/search", json=body, timeout=600).raise_for_status()
        ids = [hit["id"] for hit in answer.json()["results"][0]["hits"]]
        assert ids == [one["id"] for at, one in enumerate(rows) if at != 11]
        assert long_reads == [70_000] * 3


def test_a_tool_reads_no_passages_that_it_may_not_answer(folder, long_reads):
    pytest.importorskip("mcp", reason="the package of the protocol")
    with running(configured(folder, mcp=True)) as url:
        del long_reads[:]
        assert error_of(sent(url, "mcp")) == ("limit", "limits.tool_answer_bytes")
        assert long_reads == []
        assert not sent(url, "mcp", k=1).json()["result"].get("isError")


@pytest.mark.parametrize(("other", "limit"), [("a", "key_bytes"), ("b", "queue_bytes")])
def test_answers_count_while_they_wait_for_a_thread_and_take_nothing_else(folder, long_reads, other, limit):
    """Of two that do not fit together, the second one is refused at once, and nothing is read for it."""
    limits, keys = {"queue_bytes": 20_000_000, "key_bytes": 15_000_000}, {name: new_key() for name in "ab"}
    given = {name: {"sha256": digest} for name, (_, digest) in keys.items()}
    with busy_desk(folder, limits=limits, keys=given) as (url, service, go), contextlib.ExitStack() as stack:
        del long_reads[:]
        body = json.dumps(asked()).encode()
        one = stack.enter_context(contextlib.closing(bounds.connected(url, 600)))
        one.sendall(bounds.head("/v1/search", keys["a"][0], len(body)) + body)
        until(lambda: service.desk.jobs == 3)
        estimate = service.budget.nbytes - len(body)
        assert COUNT * 600_000 < estimate < COUNT * 601_000
        headers = {"Authorization": f"Bearer {keys[other][0]}"}
        refused = httpx.post(f"{url}/v1/search", content=body, headers=headers, timeout=600)
        assert error_of(refused) == ("overloaded", f"limits.{limit}")
        assert service.budget.nbytes == estimate + len(body)
        assert long_reads == []
        go.set()
        status, found = bounds.reply(one)
        assert status == 200
        assert abs(len(found) - estimate) < COUNT * 200
        until(lambda: service.budget.nbytes == 0)


@pytest.mark.parametrize("kind", ["json", "arrow", "dify", "mcp", "page"])
def test_damage_that_a_late_read_finds_is_not_told(tmp_path, folder, kind):
    if kind == "mcp":
        pytest.importorskip("mcp", reason="the package of the protocol")
    if kind == "arrow":
        pytest.importorskip("pyarrow", reason="it writes Arrow streams")
    copy = tmp_path / "index"
    shutil.copytree(folder, copy)
    with running(configured(str(copy), limits={"tool_answer_bytes": 10**8}, mcp=kind == "mcp")) as url:
        (file,) = (one for one in copy.rglob("*") if one.is_file() and one.stat().st_size > COUNT * LENGTH)
        with file.open("r+b") as opened:
            at = file.read_bytes().index(b"a" * LENGTH) + LENGTH // 2
            opened.seek(at)
            opened.write(b"\xff")  # in the pages that are mapped, too: no UTF-8
        answer = sent(url, kind)
        assert "damaged" in answer.text
        assert str(copy) not in answer.text
        assert answer.status_code == (200 if kind == "mcp" else 500)
        assert metric(url, "hopfuse_queue_bytes") == 0


def test_a_client_that_leaves_gives_the_bytes_of_its_answer_back(folder, long_reads):
    with busy_desk(folder) as (url, service, go):
        del long_reads[:]
        with contextlib.closing(bounds.connected(url, 600)) as one:
            body = json.dumps(asked()).encode()
            one.sendall(bounds.head("/v1/search", None, len(body)) + body)
            until(lambda: service.budget.nbytes > COUNT * LENGTH)
        until(lambda: service.budget.nbytes == 0)
        assert long_reads == []
        go.set()


@pytest.mark.parametrize("kind", ["json", "page"])
def test_bytes_are_corrected_once_an_answer_is_encoded(tmp_path, kind):
    """A control character takes one byte in the index, and six in JSON."""
    rows = [{"id": f"p{at:02}", "text": "Ankara" + "\1" * 500_000} for at in range(2)]
    hf.Index.build(passages=rows, vectors=np.ones((2, DIM), np.float32), encoder=ENCODERS["cities"]).save(tmp_path)
    for most, status in ((8_000_000, 200), (4_000_000, 400)):
        with running(configured(str(tmp_path), limits={"key_bytes": most})) as url:
            answer = sent(url, kind, k=2)
            assert answer.status_code == status
            if status == 200:
                assert len(answer.content) > 6_000_000
            else:
                assert error_of(answer) == ("limit", "limits.key_bytes")
            until(lambda url=url: metric(url, "hopfuse_queue_bytes") == 0)


def test_equal_passages_of_a_stream_are_read_once_and_not_kept(folder, long_reads):
    pa = pytest.importorskip("pyarrow", reason="it writes Arrow streams")
    with running(configured(folder)) as url:
        for _ in range(2):
            del long_reads[:]
            body = asked(k=2, queries=3, fields=["text"])
            headers = PLAIN | {"accept": ARROW["content-type"]}
            answer = httpx.post(f"{url}/v1/search", json=body, headers=headers, timeout=600).raise_for_status()
            table = pa.ipc.open_stream(answer.content).read_all()
            assert table.num_rows == 3
            assert {len(one) for row in table["text"].to_pylist() for one in row} == {LENGTH + 9}
            assert 2 <= len(long_reads) <= 6
        assert len(long_reads) >= 2  # not kept from the request before


def test_a_trace_counts_while_its_answer_waits(tmp_path):
    names = [f"{city} {'n' * 30_000}" for city in ("Ankara", "Bergen")]
    rows = [{"id": f"p{at}", "text": "About Ankara."} for at in range(3)]
    edges = [{"src": at, "dst": 3 + other, "type": "context"} for at in range(3) for other in range(2)]
    vectors = np.ones((3, DIM), np.float32)
    hf.Index.build(passages=rows, vectors=vectors, entities=names, graph=edges, encoder=ENCODERS["cities"]).save(
        tmp_path
    )
    with busy_desk(str(tmp_path)) as (url, service, go), contextlib.closing(bounds.connected(url, 600)) as one:
        query = {"vector": [1.0] * DIM, "entities": [0, 1]}
        body = json.dumps({"queries": [query], "k": 3, "trace": True, **FAR}).encode()
        one.sendall(bounds.head("/v1/search", None, len(body)) + body)
        until(lambda: service.desk.jobs == 3)
        assert service.budget.nbytes > len(body) + 60_000
        go.set()
        status, found = bounds.reply(one)
        assert status == 200
        assert found.count(b"n" * 30_000) >= 2


# ---- What the index knows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["é", 7])
def test_the_lengths_of_strings_are_those_of_their_utf8(tmp_path, ids):
    texts = ["", "plain", "Ünïcode", "数据", "🜁" * 30]
    metadata = [
        {"tags": ["a", "ü" * 9], "note": "数", "number": 1},
        {},
        {"tags": []},
        {"real": 0.5, "flag": True, "note": ""},
        {"number": -(2**62)},
    ]
    rows = [
        {
            "id": f"{ids}{at}" if isinstance(ids, str) else ids + at,
            "title": text[:2],
            "text": text,
            "metadata": metadata[at],
        }
        for at, text in enumerate(texts)
    ]
    hf.Index.build(passages=rows).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_passages([rows[2] | {"id": "new" if isinstance(ids, str) else 70, "text": "né" * 5}])
            change.delete_passages([rows[1]["id"]])
        live.refresh()
        index = live.index
    order = np.array([4, 0, 3, 1, 2, 2])
    for column in (index.titles, index.texts):
        assert column.lengths(order).tolist() == [len(column[at].encode()) for at in order.tolist()]
        assert column.longest() == max(len(one.encode()) for one in column)
    assert index.metadata.longest() >= index.metadata.lengths(order).max()
    real = [len(str(index.passage_ids[at]).encode()) for at in order.tolist()]
    lengths = index.passage_ids.lengths(order).tolist()
    assert lengths == real if isinstance(ids, str) else all(a >= b for a, b in zip(lengths, real, strict=True))
    for at, about in zip(order.tolist(), index.metadata.lengths(order).tolist(), strict=True):
        row = index.metadata.row(at)
        as_json = len(json.dumps(row, ensure_ascii=False).replace(" ", "").encode()) - 2
        assert as_json <= about + 2 * len(row) <= as_json + 30 * len(row) + 4


def test_no_rows_and_no_metadata_have_lengths():
    index = hf.Index.build(passages=[{"text": "a"}])
    none = np.zeros(0, np.int64)
    assert index.texts.lengths(none).tolist() == index.metadata.lengths(none).tolist() == []
    assert index.metadata.lengths(np.zeros(2, np.int64)).tolist() == [0, 0]
    assert index.metadata.longest() == index.titles.longest() == 0
