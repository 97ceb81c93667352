"""Passages read by id, and page by page: a key learns nothing of what its filter hides."""

from __future__ import annotations

import threading
import time
from urllib.parse import quote

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.serve import new_key
from serve.raw import Raw, head
from serve.served import CITIES, TEXTS, Letters, configured, running, save

KEYS = {name: new_key() for name in ("a", "all")}


@pytest.fixture(scope="module")
def keyed(path):
    keys = {"a": {"sha256": KEYS["a"][1], "filter": {"tenant": "a"}}, "all": {"sha256": KEYS["all"][1]}}
    with running(configured(path, "[limits]\npassages = 50\n", keys=keys)) as url:
        yield url


def get(url, where, key, **parameters):
    headers = {"Authorization": f"Bearer {KEYS[key][0]}"}
    return httpx.get(f"{url}/v1/passages{where}", params=parameters, headers=headers, timeout=60)


def scroll(read, **parameters):
    """Every passage, and the sizes of the pages."""
    found, sizes = [], []
    while True:
        page = read(**parameters).raise_for_status().json()
        found += page["passages"]
        sizes.append(len(page["passages"]))
        if page["after"] is None:
            return found, sizes
        parameters["after"] = page["after"]


def code(answer):
    return answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["field"]


def test_a_passage_by_id(client):
    answer = client.get("/v1/passages/p3").raise_for_status().json()
    assert answer == {"id": "p3", "title": "No. 3", "text": TEXTS[3], "metadata": {"tenant": "b", "number": 3}}
    assert client.get("/v1/passages/p3?index=cities").json() == answer
    assert code(client.get("/v1/passages/p3?index=nope")) == (404, "unknown", "index")
    for id in ("p99", "", "p3/", "%00", "a" * 5000):
        assert code(client.get(f"/v1/passages/{id}")) == (404, "unknown", "id")
    assert len(client.get(f"/v1/passages/{'a' * 5000}").content) < 1000


def test_documents_languages_and_ids_of_any_characters(tmp_path):
    ids = ["a/b", "ä ö?#", "%2F", ".."]
    passages = [{"id": id, "text": f"About {id}.", "document": "book", "language": "de"} for id in ids]
    vectors = Letters().encode_passages([one["text"] for one in passages])
    hf.Index.build(passages=passages, vectors=vectors, encoder=Letters()).save(tmp_path)
    with running(configured(str(tmp_path))) as url, httpx.Client(base_url=url, timeout=60) as client:
        for id, given in zip(ids[:3], passages, strict=False):
            assert client.get(f"/v1/passages/{quote(id, safe='')}").json() == given
        found, _ = scroll(lambda **given: client.get("/v1/passages", params=given))
        assert found == sorted(passages, key=lambda one: one["id"])


def test_a_hidden_passage_is_answered_like_an_absent_one(keyed):
    assert get(keyed, "/p2", "a").json()["metadata"] == {"tenant": "a", "number": 2}
    assert get(keyed, "/p3", "all").status_code == 200
    hidden, absent = get(keyed, "/p3", "a"), get(keyed, "/x3", "a")
    assert code(hidden) == (404, "unknown", "id")
    assert hidden.content.replace(b"p3", b"x3") == absent.content
    assert list(hidden.headers) == list(absent.headers)
    assert httpx.get(f"{keyed}/v1/passages/p3").status_code == httpx.get(f"{keyed}/v1/passages").status_code == 401


def test_a_key_scrolls_through_what_it_sees(keyed):
    everything = sorted(f"p{at}" for at in range(len(CITIES)))
    for key, seen in (("all", everything), ("a", [id for id in everything if int(id[1:]) % 2 == 0])):
        for limit in (1, 2, 5, 50):
            found, sizes = scroll(lambda key=key, **given: get(keyed, "", key, **given), limit=limit)
            assert [one["id"] for one in found] == seen
            assert set(sizes[:-1]) <= {limit}
    # A place between ids, one of a hidden passage and one of a seen passage are all places.
    after = [get(keyed, "", "a", after=id, limit=1).json()["passages"][0]["id"] for id in ("p3", "p3x", "p2")]
    assert after == ["p4", "p4", "p4"]
    assert code(get(keyed, "", "a", limit=51)) == (400, "range", "limit")
    for name in ("limit", "at_least", "timeout_ms"):
        for wrong in ("x", "-1", "1.5", "²", "9" * 30):
            assert code(get(keyed, "", "a", **{name: wrong})) == (400, "range", name)


@pytest.mark.parametrize("passage", [{"text": "x" * 300_000}, {"text": "x", "metadata": {"note": "x" * 300_000}}])
def test_a_page_ends_after_so_many_bytes(tmp_path, passage):
    rows = [{"id": at, **passage} for at in range(9)]
    vectors = np.ones((9, Letters.dim), np.float32)
    hf.Index.build(passages=rows, vectors=vectors, encoder=Letters()).save(tmp_path)
    with running(configured(str(tmp_path))) as url:
        found, sizes = scroll(lambda **given: httpx.get(f"{url}/v1/passages", params=given, timeout=60))
        assert [one["id"] for one in found] == list(range(9))
        assert sizes == [4, 4, 1]


def test_integer_ids(tmp_path):
    with running(configured(save(tmp_path, ids=-3))) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.get("/v1/passages/-3").json()["id"] == -3
        for id in ("03", "+3", "x", "-0", "٣", "9" * 40, "12"):
            assert code(client.get(f"/v1/passages/{quote(id)}")) == (404, "unknown", "id")
        found, _ = scroll(lambda **given: client.get("/v1/passages", params=given), limit=5)
        assert [one["id"] for one in found] == list(range(-3, 9))
        assert code(client.get("/v1/passages?after=x")) == (400, "type", "after")


def test_a_scroll_loses_nothing_while_the_index_changes(tmp_path):
    path, index = save(tmp_path), {"path": str(tmp_path), "writable": True}
    with running(configured(path, indexes={"cities": index})) as url, httpx.Client(base_url=url, timeout=60) as client:
        found, parameters = [], {"limit": 2}
        for at in range(100):
            page = client.get("/v1/passages", params=parameters).raise_for_status().json()
            found += [one["id"] for one in page["passages"]]
            if page["after"] is None:
                break
            # The last passage that was read is deleted, and another is replaced.
            client.delete(f"/v1/passages/{page['after']}").raise_for_status()
            row = {"id": "p5", "text": f"Changed {at} times."}
            seq = client.post("/v1/passages", json={"passages": [row], "replace": True}).json()["seq"]
            parameters |= {"after": page["after"], "at_least": seq}
        assert found == sorted(f"p{at}" for at in range(12))
        assert client.get("/v1/passages/p5").json()["text"].startswith("Changed")
        assert client.delete("/v1/passages/p1").status_code == 404


def test_the_event_loop_reads_no_ids(tmp_path, monkeypatch):
    readers = set()

    def spied(column, row):
        readers.add(threading.current_thread().name)
        return original(column, row)

    with running(configured(save(tmp_path))) as url:
        kind = type(hf.Index.open(tmp_path).passage_ids)
        original = kind.__getitem__
        monkeypatch.setattr(kind, "__getitem__", spied)
        assert httpx.get(f"{url}/v1/passages", params={"after": "p3"}).status_code == 200
        assert httpx.get(f"{url}/v1/passages/p3").status_code == 200
    assert readers
    assert all(name.startswith("hopfuse-read") for name in readers)


def test_many_ids_are_sorted_as_by_sorted(tmp_path):
    draw = np.random.default_rng(5)
    ids = sorted({f"{one:x}" for one in draw.integers(0, 2**40, 9000)}, key=hash)
    rows = [{"id": id, "text": "x"} for id in ids]
    hf.Index.build(passages=rows, vectors=Letters().encode_passages(["x"] * len(ids)), encoder=Letters()).save(tmp_path)
    with running(configured(str(tmp_path))) as url, httpx.Client(base_url=url, timeout=60) as client:
        found, _ = scroll(lambda **given: client.get("/v1/passages", params=given), limit=1000)
        assert [one["id"] for one in found] == sorted(ids)


def test_reads_whose_clients_have_left_hold_no_place(path):
    """They would wait for a seq, up to their timeout, and others would be refused."""
    with running(configured(path, "[limits]\nconnections = 4\nmax_timeout_ms = 3600000\n")) as url:
        for route in ("/v1/passages", "/v1/passages/p1"):
            for _ in range(9):
                with Raw(url) as raw:
                    raw.send(head("GET", f"{route}?at_least=99&timeout_ms=3600000") + b"\r\n")
        for _ in range(1000):  # the server sees within a tenth of a second that clients left; a read waits for an hour
            is_waiting = 'hopfuse_seq_waiting{index="cities"} 0.0' not in httpx.get(f"{url}/metrics").text
            if not is_waiting:
                break
            time.sleep(0.02)
        assert not is_waiting
        assert httpx.get(f"{url}/v1/passages", params={"limit": 1}).status_code == 200
