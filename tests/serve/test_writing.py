"""Changes over HTTP: what is added is searched as the library searches it, keys bound them, and searches go on."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.client import AsyncClient, Client
from hopfuse.errors import EndpointError, InputError
from hopfuse.extract import QuestionMatcher, WordReader, build_memory
from hopfuse.recipes import GuidedWalk
from hopfuse.serve import Service, new_key
from refusals import refused as refusal_of
from serve.served import DIM, ENCODERS, TEXTS, Letters, configured, running, save, small_index

QUESTION = "What is far from Ankara, and from Oslo?"


def writable(path, text="", **changes):
    indexes = {"cities": {"path": path, "writable": True}}
    return configured(path, text, **{"indexes": indexes, "follow_seconds": 0.01, **changes})


@pytest.fixture
def folder(tmp_path):
    return save(tmp_path / "index")


@pytest.fixture
def url(folder):
    with running(writable(folder)) as url:
        yield url


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """A server that takes changes, for requests that change nothing."""
    folder = save(tmp_path_factory.mktemp("unchanged") / "index")
    with running(writable(folder, "[limits]\npassages = 5\nbody_bytes = 20000\n")) as url:
        yield url


def post(url, key=None, **body):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/v1/passages", json=body, headers=headers, timeout=60)


def delete(url, id, key=None, **query):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.delete(f"{url}/v1/passages/{id}", params=query, headers=headers, timeout=60)


def search(url, key=None, **body):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    asked = {"queries": [QUESTION], "k": 20, **body}
    return httpx.post(f"{url}/v1/search", json=asked, headers=headers, timeout=60)


def hits(answer):
    return [(hit["id"], hit["score"], hit["text"]) for hit in answer.json()["results"][0]["hits"]]


def own(folder, **more):
    """The library's own answer, over what is on the disk."""
    index = hf.Index.open(folder)
    found = GuidedWalk(index, encoder=Letters(), matcher=QuestionMatcher(index)).search([QUESTION], k=20, **more)
    return [(hit.id, hit.score, hit.text) for hit in found[0]]


def word_index(rows):
    """An index whose entities are the words of its passages."""
    index = build_memory(WordReader().read(rows)).index()
    index = index.with_metadata(rows if "metadata" in rows[0] else None)
    return index.with_vectors(Letters().encode_passages(index.texts_to_index()), encoder=Letters())


@pytest.mark.parametrize("filtered", [False, True])
def test_words_of_an_added_passage_are_read_like_those_of_the_index(tmp_path, filtered):
    for package in ("Stemmer", "bm25s"):
        pytest.importorskip(package, reason=f"words need {package} (extra text)")
    key, digest = new_key()
    tenant = {"metadata": {"tenant": "a"}}
    rows = [{"id": f"p{at}", "title": "", "text": text, **tenant} for at, text in enumerate(TEXTS)]
    added = {"id": "new", "title": "Zyzzyva", "text": "The Zyzzyva flows near Ankara.", **tenant}
    word_index(rows).save(tmp_path / "index")
    keys = f'[keys.a]\nsha256 = "{digest}"\nrights = ["read", "write"]\nfilter = {{ tenant = "a" }}\n'
    with running(writable(str(tmp_path / "index"), keys if filtered else "")) as url:
        answer = post(url, key if filtered else None, passages=[added])
        assert answer.status_code == 200, answer.text
        found = search(url, key if filtered else None, queries=["Where does the zyzzyva flow?"], at_least=1)
    assert "new" in [hit[0] for hit in hits(found)[:2]]  # beside the best by vectors, which are of letters
    index, whole = hf.Index.open(tmp_path / "index"), word_index([*rows, added])
    assert list(index.entity_names) == list(whole.entity_names)
    assert list(index.passage_frequency) == list(whole.passage_frequency)


def test_words_of_deleted_passages_are_not_counted(tmp_path):
    for package in ("Stemmer", "bm25s"):
        pytest.importorskip(package, reason=f"words need {package} (extra text)")
    rows = [{"id": f"p{at}", "title": "", "text": text} for at, text in enumerate(TEXTS)]
    word_index(rows).save(tmp_path)

    def entities():
        return httpx.get(f"{url}/v1/indexes", timeout=60).json()["indexes"][0]["entities"]

    with running(writable(str(tmp_path))) as url:
        before = entities()
        assert before == word_index(rows).num_entities
        assert post(url, passages=[{"id": "new", "text": "The zyzzyva lies far."}]).json() == {"seq": 1}
        search(url, at_least=1)
        assert entities() == before + 1
        assert post(url, entities=["Oslo"]).json() == {"seq": 2}  # stated: it needs no passage
        assert delete(url, "new").json() == {"seq": 3}
        search(url, at_least=3)
        assert entities() == before + 1
        assert hf.Index.open(tmp_path).num_entities == before + 1


def test_added_passages_are_found_as_by_the_library(url, folder):
    vector = np.arange(1, DIM + 1, dtype=np.float32)
    added = post(
        url,
        passages=[
            {"id": "a/1", "text": "Oslo lies near Bergen.", "entities": ["Oslo", "Bergen", "Oslo"]},
            {"id": "a2", "title": "Oslo", "text": "A city.", "vector": vector.tolist(), "metadata": {"tenant": "b"}},
            {"id": "a3", "text": "Here.", "vector_base64": base64.b64encode(vector.tobytes()).decode()},
        ],
        entities=["Oslo", {"name": "Ankara"}],
        aliases={"Oslo": ["Kristiania"]},
        edges=[
            {"src": ["passage", "a2"], "dst": ["entity", "Oslo"], "type": "context", "weight": 2},
            {"src": ["entity", "Oslo"], "dst": ["entity", "Ankara"], "stated_by": "a3"},
        ],
    )
    assert (added.status_code, added.json()) == (200, {"seq": 1})
    answer = search(url, at_least=1)
    assert (answer.status_code, answer.json()["seq"]) == (200, 1)
    assert hits(answer) == own(folder)
    index = hf.Index.open(folder)
    assert list(index.passage_ids)[-3:] == ["a/1", "a2", "a3"]
    assert list(index.entity_names)[-1] == "Oslo"
    assert index.metadata["tenant"][13] == "b"
    assert delete(url, "a%2F1").json() == {"seq": 2}
    assert delete(url, "a2").json() == {"seq": 3}
    assert hits(search(url, at_least=3)) == own(folder)
    assert "a/1" not in list(hf.Index.open(folder).passage_ids)


def test_spellings_of_a_name_are_one_entity_and_entities_merge(url, folder):
    before = hf.Index.open(folder).num_entities
    names = ["electrons", "US", "L'Aquila", "Electrons", "U.S.", "L’Aquila", "the electrons"]
    for at, name in enumerate(names):
        answer = post(url, passages=[{"id": f"new {at}", "text": "t", "entities": [name, name.upper()]}])
        assert answer.status_code == 200, answer.text
    index = hf.Index.open(folder)
    assert list(index.entity_names)[before:] == ["electrons", "US", "L'Aquila"]
    assert index.passage_frequency[before:].tolist() == [3, 2, 2]
    assert index.graph.degree[-3:, 0].tolist() == [3, 2, 2]
    assert set(index.entity_aliases[before]) == {"ELECTRONS", "Electrons", "the electrons", "THE ELECTRONS"}
    with Client(url) as client:
        seq = client.add_passages([], merge={"US": ["L'Aquila"]}, aliases={"US": ["America"]})
    assert seq == len(names) + 1
    index = hf.Index.open(folder)
    assert list(index.entity_names)[before:] == ["electrons", "US"]
    assert set(index.entity_aliases[-1]) == {"U.S.", "L'Aquila", "L’Aquila", "L'AQUILA", "L’AQUILA", "America"}
    found = search(url, queries=[{"text": "Where is l’aquila?"}], at_least=len(names) + 1, recipe="guided-walk")
    assert {f"new {at}" for at in (1, 2, 4, 5)} <= {hit[0] for hit in hits(found)}


def test_ids_are_refused_or_replaced(url):
    refused = post(url, passages=[{"id": "new", "text": "t"}, {"id": "p3", "text": "t"}])
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["code"], error["field"], error["values"]["given"]) == ("duplicate", "passages[1].id", "p3")
    again = {"passages": [{"id": "p3", "text": "Anew."}, {"id": "new", "text": "New."}], "replace": True}
    assert [post(url, **again).json()["seq"] for _ in range(2)] == [1, 2]
    found = search(url, at_least=2, k=20, queries=[{"text": "Anew.", "allow": ["p3", "new"]}])
    assert sorted(hit["text"] for hit in found.json()["results"][0]["hits"]) == ["Anew.", "New."]
    gone = delete(url, "nobody")
    assert (gone.status_code, gone.json()["error"]["field"]) == (404, "id")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "missing", "passages"),
        ({"passages": [{"id": "a"}]}, "missing", "passages[0].text"),
        ({"passages": [{"id": "", "text": "t"}]}, "empty", "passages[0].id"),
        ({"passages": [{"id": 1.5, "text": "t"}]}, "type", "passages[0].id"),
        ({"passages": [{"id": 2**63, "text": "t"}]}, "range", "passages[0].id"),
        ({"passages": [{"id": 1, "text": "t"}]}, "type", "passages[0].id"),
        ({"passages": [{"id": "a", "text": "t"}] * 2}, "duplicate", "passages[1].id"),
        ({"passages": [{"id": f"a{i}", "text": "t"} for i in range(6)]}, "limit", "passages"),
        ({"passages": [{"id": "a", "text": "t", "vector": [1.0]}]}, "shape", "passages[0].vector"),
        ({"passages": [{"id": "a", "text": "t", "vector": [1e30] * DIM}]}, "finite", "passages[0].vector"),
        ({"passages": [{"id": "a", "text": "t", "vector_base64": "!"}]}, "syntax", "passages[0].vector_base64"),
        ({"passages": [{"id": "a", "text": "t", "metadata": {"tenant": 3}}]}, "type", "passages[0].metadata.tenant"),
        ({"passages": [{"id": "a", "text": "t", "metadata": {"x": {"y": 1}}}]}, "type", "passages[0].metadata.x"),
        ({"passages": [{"id": "a", "text": "t", "facts": [["A", "b", "C"]]}]}, "missing", "facts"),
        ({"passages": [{"id": "a", "text": "t", "facts": [["A", "b"]]}]}, "length", "passages[0].facts[0]"),
        ({"edges": [{"src": ["entity", "X"], "dst": ["passage", "p1"]}]}, "unknown", None),
        ({"edges": [{"src": ["node", 1], "dst": ["passage", "p1"]}]}, "choice", "edges[0].src[0]"),
        ({"edges": [{"src": ["entity", "Fes"], "dst": ["passage", "p1"], "weight": 0}]}, "range", "edges[0].weight"),
        ({"entities": [{"name": "N", "vector": [1.0]}]}, "unused", "entities[0].vector"),
        ({"aliases": {"nobody": ["n"]}}, "unknown", None),
        ({"merge": {"Ankara": ["nobody"]}}, "unknown", None),
        ({"merge": {"Ankara": ["Ankara"]}}, "conflict", "merge"),
        ({"merge": {"Ankara": "Oslo"}}, "type", "merge.Ankara"),
        ({"passages": [], "extra": 1}, "unknown", "extra"),
        ({"passages": [{"id": "a", "text": "t"}], "index": "other"}, "unknown", "index"),
        ({"passages": [{"id": "a", "text": "t"}], "timeout_ms": 10**9}, "range", "timeout_ms"),
        ({"passages": [{"id": "a", "text": "t" * 20000}]}, "too_large", None),
    ],
)
def test_an_invalid_change_is_refused_by_field_and_changes_nothing(unchanged, body, code, field):
    refused = post(unchanged, **body)
    error = refused.json()["error"]
    assert refused.status_code in (400, 404, 413), error
    assert (error["code"], error["field"]) == (code, field), error
    assert search(unchanged, fields=[], k=1).json()["seq"] == 0


def test_a_process_that_reads_says_so_and_follows_the_one_that_writes(url, folder):
    with running(configured(folder, follow_seconds=0.01)) as reader:
        for refused in (post(reader, passages=[{"id": "a", "text": "t"}]), delete(reader, "p1")):
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "read_only")
        listed = [httpx.get(f"{one}/v1/indexes").json()["indexes"][0]["writable"] for one in (url, reader)]
        assert listed == [True, False]
        seq = post(url, passages=[{"id": "a", "text": "Oslo.", "entities": ["Ankara"]}]).json()["seq"]
        assert hits(search(reader, at_least=seq)) == hits(search(url, at_least=seq)) == own(folder)


@pytest.mark.full
def test_one_worker_writes_and_releases_the_index_at_its_end(folder, tmp_path):
    with hf.Index.open(folder, writable=True):
        service = Service(writable(folder), ENCODERS)
        with refusal_of(InputError, "busy", "directory"):
            service.open_all()
    with running(writable(folder)) as url:
        assert post(url, passages=[{"id": "a", "text": "t"}]).status_code == 200
        with refusal_of(InputError, "busy", "directory"):
            hf.Index.open(folder, writable=True)
    with hf.Index.open(folder, writable=True) as live:
        assert live.seq == 1


def test_unused_snapshots_are_freed_in_a_separate_process(folder):
    """Its index is excluded from full collections, but not the states after it, some of which are in cycles."""
    searched = []

    async def follow(live):
        service = Service(configured(folder, follow_seconds=0.01), ENCODERS, alone=True)
        await service.start()
        for number in range(4):
            with live.change() as batch:
                batch.add_passages([{"id": f"new {number}", "text": "Oslo."}], vectors=np.ones((1, DIM), np.float32))
            await service.followers["cities"].reach(batch.seq, time.monotonic() + 60.0)
            searched.append(weakref.ref(service.snapshots["cities"].index._sections))
            assert service.snapshots["cities"].index.mask(hf.where(tenant="a")).any()  # reads the metadata
        await service.stop()

    with hf.Index.open(folder, writable=True) as live:
        try:
            asyncio.run(follow(live))
            gc.collect()
            assert [sections() for sections in searched[:-1]] == [None] * 3
        finally:
            gc.unfreeze()


@pytest.mark.full
def test_ids_that_are_numbers(tmp_path):
    rows = [{"id": at, "text": f"text {at}"} for at in (3, -4)]
    hf.Index.build(passages=rows, vectors=np.eye(2, DIM, dtype=np.float32)).save(tmp_path)
    with running(writable(str(tmp_path))) as url:
        assert post(url, passages=[{"id": 7, "text": "t"}]).json() == {"seq": 1}
        assert [delete(url, id).status_code for id in ("-4", "7", "7", "x", "9" * 30)] == [200, 200, 404, 404, 404]
        assert delete(url, "3", timeout_ms="x").json()["error"]["field"] == "timeout_ms"
        assert delete(url, "3", index="cities", timeout_ms=1000).json() == {"seq": 4}


# ---- Keys -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def keys():
    return {name: new_key() for name in ("reader", "writer", "a", "b", "late")}


@pytest.fixture
def keyed(folder, keys):
    about = {
        "reader": {},
        "writer": {"rights": ["read", "write"]},
        "a": {"rights": ["read", "write"], "filter": {"tenant": "a"}},
        "b": {"rights": ["read", "write"], "filter": {"tenant": "b"}},
        "late": {"rights": ["write"], "filter": {"tenant": "a", "number__gt": 100}},
    }
    made = {name: {"sha256": keys[name][1], **one} for name, one in about.items()}
    with running(writable(folder, keys=made)) as url:
        yield url, {name: key for name, (key, _) in keys.items()}


@pytest.mark.full
def test_rights_and_the_values_that_a_filter_sets_and_checks(keyed, folder):
    url, key = keyed
    one = {"passages": [{"id": "n", "text": "Of Ankara.", "entities": ["Ankara"]}]}
    assert post(url, None, **one).status_code == 401
    assert post(url, key["reader"], **one).status_code == delete(url, "p0", key["reader"]).status_code == 403
    assert post(url, key["a"], **one).json() == {"seq": 1}
    assert hf.Index.open(folder).metadata.row(12) == {"tenant": "a"}
    other = {"id": "m", "text": "t", "metadata": {"tenant": "b"}}
    refused = post(url, key["a"], passages=[other]).json()["error"]
    assert (refused["code"], refused["values"]["given"]) == ("denied", "m")
    late = {"id": "m", "text": "t"}
    assert post(url, key["late"], passages=[late]).status_code == 400
    assert post(url, key["late"], passages=[late | {"metadata": {"number": 101}}]).json() == {"seq": 2}
    assert post(url, key["writer"], passages=[{"id": "free", "text": "t"}]).json() == {"seq": 3}
    for body in (
        {"aliases": {"Ankara": ["A"]}},
        {"merge": {"Ankara": ["Fes"]}},
        {"edges": [{"src": ["entity", "Fes"], "dst": ["entity", "Graz"]}]},
    ):
        assert post(url, key["a"], **body).status_code == 400
    assert post(url, key["writer"], aliases={"Ankara": ["A"]}).json() == {"seq": 4}


def test_a_tenant_cannot_change_or_see_anothers_passages(keyed, folder):
    url, key = keyed
    before = hits(search(url, key["b"]))
    unknown = delete(url, "nobody", key["a"])
    hidden = delete(url, "p1", key["a"])
    assert unknown.status_code == hidden.status_code == 404
    assert unknown.text.replace("nobody", "p1") == hidden.text
    replaced = post(url, key["a"], passages=[{"id": "p1", "text": "mine"}], replace=True).json()["error"]
    assert (replaced["code"], replaced["values"]["given"]) == ("duplicate", "p1")
    ends = []
    for end in ("p1", "nobody"):
        edge = {"src": ["passage", end], "dst": ["entity", "Ankara"]}
        answer = post(url, key["a"], edges=[edge])
        error = answer.json()["error"]
        assert (error["code"], error["values"]["given"]) == ("unknown", end)
        ends.append(answer.text.replace(end, "*"))
    assert ends[0] == ends[1]
    mine = [{"id": f"m{at}", "text": f"Ankara, Bergen {at}.", "entities": ["Ankara", "Oslo"]} for at in range(4)]
    assert post(url, key["a"], passages=mine).json() == {"seq": 1}
    assert delete(url, "p0", key["a"]).json() == {"seq": 2}
    answer = search(url, key["b"], at_least=2)
    assert answer.json()["seq"] == 2
    assert hits(answer) == before == own(folder, allow=hf.where(tenant="b"))
    assert {"m0", "p2"} <= {id for id, *_ in hits(search(url, key["a"]))}
    assert "p0" not in {id for id, *_ in hits(search(url, key["a"]))}


def test_a_prefix_hides_whether_another_has_an_id(folder, keys):
    made = {
        name: {"sha256": keys[name][1], "rights": ["write"], "filter": {"tenant": name}, "prefix": f"{name}/"}
        for name in ("a", "b")
    }
    with running(writable(folder, keys=made)) as url:
        assert post(url, keys["b"][0], passages=[{"id": "b/1", "text": "t"}]).json() == {"seq": 1}
        for replace in (False, True):
            answers = {
                id: post(url, keys["a"][0], passages=[{"id": id, "text": "t"}], replace=replace)
                for id in ("b/1", "b/2", "p1", "p99")
            }
            errors = [answer.json()["error"] for answer in answers.values()]
            assert {one["field"] for one in errors} == {"passages[0].id"}
            assert {(one["code"], one["values"]["allowed"]) for one in errors} == {("forbidden", "a/")}
            assert len({answer.text.replace(id, "*") for id, answer in answers.items()}) == 1
        assert post(url, keys["a"][0], passages=[{"id": "a/1", "text": "t"}]).json() == {"seq": 2}


# ---- Many at once ---------------------------------------------------------------------------------------------------


class Disk:
    """The flush of the disk, which waits until it is let go, and may fail."""

    def __init__(self, monkeypatch):
        self.flushes, self.begun, self.go = 0, threading.Event(), threading.Event()
        self.error = None
        flush = os.fsync

        def slow(file):
            self.flushes += 1
            self.begun.set()
            assert self.go.wait(60)
            if self.error is not None:
                raise self.error
            flush(file)

        monkeypatch.setattr(os, "fsync", slow)


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


def waiting(url):
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("hopfuse_changes_waiting "))


def test_changes_that_wait_share_a_flush_and_searches_go_on(folder, disk):
    with running(writable(folder)) as url, ThreadPoolExecutor(9) as pool:
        try:
            disk.go.set()
            assert post(url, passages=[{"id": "first", "text": "t"}]).json() == {"seq": 1}
            before = disk.flushes
            disk.go.clear()
            disk.begun.clear()
            sent = [pool.submit(post, url, passages=[{"id": "n0", "text": "t"}])]
            assert disk.begun.wait(60)
            sent += [pool.submit(post, url, passages=[{"id": f"n{at}", "text": "t"}]) for at in range(1, 8)]
            while waiting(url) < 8:
                pass
            assert search(url).status_code == httpx.get(f"{url}/health/ready").status_code == 200
            pending = pool.submit(search, url, at_least=9)
            disk.go.set()
            assert sorted(one.result().json()["seq"] for one in sent) == list(range(2, 10))
            assert disk.flushes <= before + 3  # the first one, those that were checked by then, and the rest
            assert len(hits(pending.result())) == 20
        finally:
            disk.go.set()


@pytest.mark.full
def test_a_change_that_is_late_or_too_much_is_refused(folder, disk):
    with running(writable(folder, "[limits]\nwrites = 2\n")) as url, ThreadPoolExecutor(2) as pool:
        try:
            late = post(url, passages=[{"id": "n0", "text": "t"}], timeout_ms=50)
            assert late.status_code == 504
            assert late.json()["error"]["code"] == "timeout"
            assert "may still be committed" in late.json()["error"]["values"]["result"]
            second = pool.submit(post, url, passages=[{"id": "n1", "text": "t"}])
            while waiting(url) < 2:
                pass
            full = post(url, passages=[{"id": "n2", "text": "t"}])
            assert (full.status_code, full.headers["retry-after"]) == (429, "1")
            disk.go.set()
            assert second.result().json() == {"seq": 2}
            assert post(url, passages=[{"id": "n2", "text": "t"}]).json() == {"seq": 3}
        finally:
            disk.go.set()


def held(url):
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("hopfuse_queue_bytes "))


def test_a_change_holds_its_bytes_until_it_is_on_the_disk(folder, disk):
    with running(writable(folder)) as url:
        try:
            body = {"passages": [{"id": "n0", "text": "t" * 5000}], "timeout_ms": 200}
            late = post(url, **body)
            assert late.status_code == 504  # and it is still being committed
            assert waiting(url) == 1
            assert held(url) == len(late.request.content)
            disk.go.set()
            while waiting(url):
                pass
            assert held(url) == 0
            assert post(url, passages=[{"id": "n1", "text": "t"}]).json() == {"seq": 2}
        finally:
            disk.go.set()


@pytest.mark.full
def test_a_disk_that_takes_nothing_changes_nothing(folder, disk):
    disk.go.set()
    with running(writable(folder)) as url:
        disk.error = OSError(28, "No space left on device", folder)
        refused = post(url, passages=[{"id": "n", "text": "t"}])
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "disk")
        assert refused.json()["error"]["values"]["reason"] == "No space left on device"
        assert os.path.basename(folder) not in refused.text
        disk.error = None
        assert post(url, passages=[{"id": "n", "text": "t"}]).json() == {"seq": 1}


@pytest.mark.full
def test_a_log_that_has_grown_is_compacted(folder):
    long = 2**19 * "Ankara. "  # a log of less than 1 MiB stays
    with running(writable(folder, "[limits]\njson_bytes = 8000000\n", compact_at=0.001)) as url:
        for at in range(4):
            seq = post(url, passages=[{"id": f"n{at}", "text": long, "entities": ["Ankara"]}]).json()["seq"]
            answer = search(url, at_least=seq)
            assert hits(answer) == own(folder)
        while 'hopfuse_compactions_total{index="cities"}' not in httpx.get(f"{url}/metrics").text:
            pass
        assert hits(search(url)) == own(folder)
    assert hf.Index.open(folder).generation > 1


# ---- Encoders, clients ----------------------------------------------------------------------------------------------


@pytest.mark.full
def test_without_an_encoder_vectors_are_given(folder):
    with running(writable(folder), {}) as url:
        refused = post(url, passages=[{"id": "n", "text": "t"}]).json()["error"]
        assert (refused["code"], refused["field"]) == ("missing", "passages[0].vector")
        assert post(url, passages=[{"id": "n", "text": "t", "vector": [1.0] * 8}]).json() == {"seq": 1}


@pytest.mark.full
def test_an_index_with_facts_and_vectors_of_entities(tmp_path):
    hf.Index.build(
        passages=[{"id": "a", "text": "Ada knew Babbage."}],
        vectors=Letters().encode_passages(["Ada knew Babbage."]),
        entities=["Ada", "Babbage"],
        entity_vectors=Letters().encode_passages(["Ada", "Babbage"]),
        graph=[{"src": 0, "dst": 1, "type": "context"}],
        facts=[{"head": "Ada", "relation": "knew", "tail": "Babbage", "passage": 0}],
        encoder=Letters(),
    ).save(tmp_path)
    with running(writable(str(tmp_path))) as url:
        passage = {"id": "b", "text": "Byron was her father.", "facts": [["Byron", "father of", "Ada"]]}
        entities = [{"name": "Rome", "vector": [2.0] * DIM}]
        facts = [["Rome", "fell", "Byron", "a"]]
        assert post(url, passages=[passage], entities=entities, facts=facts).json() == {"seq": 1}
        for recipe in ("policy-rag", "triple-hybrid"):
            assert search(url, at_least=1, recipe=recipe, queries=["Who was Byron?"]).status_code == 200
    index = hf.Index.open(tmp_path)
    # Within a change, what the client states comes before what is in its passages.
    assert index.facts.texts(index.entity_names) == ["Ada knew Babbage", "Rome fell Byron", "Byron father of Ada"]
    names = list(index.entity_names)
    assert np.array_equal(index.entity_corpus.vectors[names.index("Rome")], np.full(DIM, 2.0))
    assert np.array_equal(index.entity_corpus.vectors[names.index("Byron")], Letters().encode_passages(["Byron"])[0])


def test_the_clients_change_an_index(url, folder):
    with Client(url) as client:
        vector = Letters().encode_passages(["Oslo."])[0]
        seq = client.add_passages([{"id": "a b/c?", "text": "Oslo.", "vector": vector}], entities=["Oslo"])
        assert client.search([QUESTION], at_least=seq).seq == seq == 1
        with refusal_of(InputError, "duplicate", "passages[0].id"):
            client.add_passages([{"id": "a b/c?", "text": "Oslo."}])
        assert client.add_passages([{"id": "a b/c?", "text": "Oslo."}], replace=True) == 2
        assert client.delete_passage("a b/c?", index="cities") == 3
        with refusal_of(InputError, "unknown", "id"):
            client.delete_passage("a b/c?")
    with (
        running(configured(folder)) as reader,
        Client(reader) as client,
        refusal_of(EndpointError, "read_only", "index"),
    ):
        client.delete_passage("p1")


@pytest.mark.full
def test_the_asynchronous_client_changes_an_index(url):
    import asyncio

    async def change():
        async with AsyncClient(url) as client:
            seq = await client.add_passages([{"id": "n", "text": "t"}])
            return seq, await client.delete_passage("n")

    assert asyncio.run(change()) == (1, 2)


@pytest.mark.full
def test_extra_passages_of_an_index_that_is_not_the_first(tmp_path):
    for name in "ab":
        small_index(ids=name).save(tmp_path / name)
    indexes = {name: {"path": str(tmp_path / name), "writable": name == "b"} for name in "ab"}
    with running(writable("", indexes=indexes)) as url:
        assert post(url, passages=[{"id": "n", "text": "t"}]).status_code == 409
        assert post(url, passages=[{"id": "n", "text": "t"}], index="b").json() == {"seq": 1}
        assert delete(url, "n", index="b").json() == {"seq": 2}
