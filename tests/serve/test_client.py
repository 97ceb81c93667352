"""The client against a real server: the recipe's own hits, retries, errors."""

from __future__ import annotations

import asyncio
import socket
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import hopfuse as hf
import numpy as np
import processes
import pytest
from hopfuse.client import AsyncClient, Client
from hopfuse.errors import EndpointError, InputError
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import GuidedWalk, PhaseGraph
from hopfuse.serve import new_key
from refusals import refused
from serve.served import TEXTS, Letters, configured, running, save

QUESTIONS = ["What is far from Ankara?", "And from Lima?", "Where is Bergen?"]


@pytest.fixture(scope="module")
def collaborators(path):
    index = hf.Index.open(path)
    return index, {"encoder": Letters(), "matcher": QuestionMatcher(index)}


@pytest.fixture
def ask(url):
    with Client(url, timeout=60) as client:
        yield client


def told(found):
    return [[(hit.id, hit.score, hit.title, hit.text, hit.metadata) for hit in row] for row in found]


def test_the_client_finds_what_the_recipe_finds(ask, collaborators):
    index, parts = collaborators
    own = GuidedWalk(index, **parts)
    assert told(ask.search(QUESTIONS, k=4)) == told(own.search(QUESTIONS, k=4))
    vectors, names = Letters().encode_queries(QUESTIONS), [["Lima"], [3], []]
    found = ask.search(vectors=vectors, entities=names, allow=["p1", "p2", "p3"], k=4)
    assert told(found) == told(own.search(vectors=vectors, entities=names, allow=["p1", "p2", "p3"], k=4))
    each = [{"tenant": "a"}, None, ("p4", "p5")]
    found = ask.search(QUESTIONS, allow=each, k=12)
    alone = [hf.where(tenant="a"), None, ["p4", "p5"]]
    assert told(found) == [told(own.search([q], allow=a, k=12))[0] for q, a in zip(QUESTIONS, alone, strict=True)]
    assert found.seq == 0
    assert found.timings["batch"] >= 1
    changed = ask.search(QUESTIONS[:1], recipe="phase-graph", options={"alpha": 0.7}, trace=True, fields=())
    expected = PhaseGraph(index, alpha=0.7, **parts).search(QUESTIONS[:1], trace=True)
    assert [(hit.id, hit.score) for hit in changed[0]] == [(hit.id, hit.score) for hit in expected[0]]
    assert {(hit.row, hit.title, hit.text) for hit in changed[0]} == {(-1, "", "")}
    assert changed.traces[0]["seeds"] == expected.traces[0]["seeds"]
    assert ask.indexes()[0]["name"] == "cities"


def test_the_asynchronous_client(url, collaborators):
    index, parts = collaborators

    async def run():
        async with AsyncClient(url, timeout=60) as client:
            listed = await client.indexes()
            return listed, await asyncio.gather(*(client.search([one], k=3) for one in QUESTIONS * 5))

    listed, found = asyncio.run(run())
    own = GuidedWalk(index, **parts).search(QUESTIONS, k=3)
    assert [told(one)[0] for one in found] == told(own) * 5
    assert listed[0]["passages"] == 12


def test_a_result_prints_as_a_table(ask):
    found = ask.search(QUESTIONS, k=2)
    lines = str(found).splitlines()
    assert lines[0] == "question 0"
    assert lines[2].split()[:3] == ["1", f"{found[0][0].score:#.5g}", found[0][0].id]
    assert found._repr_html_().count("<table>") == len(QUESTIONS)


def test_errors(ask, url, monkeypatch):
    with refused(InputError, "range", "k"):
        ask.search(QUESTIONS, k=51)
    with refused(InputError, "unknown", "index", given="nope", allowed="cities"):
        ask.search(QUESTIONS, index="nope")
    with refused(InputError, "type", "entities", given="Lima"):
        ask.search("What?", entities="Lima")
    assert told(ask.search(QUESTIONS[0])) == told(ask.search(QUESTIONS[:1]))
    with refused(InputError, "length", "queries", given={"queries": 3, "vectors": 2}):
        ask.search(QUESTIONS, vectors=np.ones((2, 8)))
    with refused(InputError, "length", "queries", given="none"):
        ask.search()
    with refused(InputError, "length", "allow", given=2, allowed="3 questions"):
        ask.search(QUESTIONS, allow=[None, ["p1"]])
    for allow, given in ((hf.where(tenant="a"), "Where"), ([hf.where(tenant="a")], "Where"), ("p1", "str")):
        with refused(InputError, "type", "allow", given=given):
            ask.search(QUESTIONS, allow=allow)
    with refused(InputError, "type", "passages", given="dict"):
        ask.add_passages({"id": "q", "text": "Here."})
    with refused(InputError, "type", "passages[0]", given="str"):
        ask.add_passages(["Here."])
    with refused(InputError, "syntax", "url", given="localhost:8080"):
        Client("localhost:8080")
    with refused(InputError, "range", "timeout", given=0):
        Client(url, timeout=0)
    with refused(EndpointError, "timeout", "timeout", seconds=-1.0, url=url):
        ask.search(QUESTIONS, timeout=-1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout=0.05) as asks, refused(EndpointError, "timeout", "timeout", seconds=0.05, url=url):
            asks.search(QUESTIONS)
    with Client("http://127.0.0.1:9") as nobody, refused(EndpointError, "connection", url="http://127.0.0.1:9"):
        nobody.search(QUESTIONS)


def ids(found):
    return [[(hit.id, hit.score) for hit in row] for row in found]


@pytest.fixture
def sent(ask, monkeypatch):
    """The types of the bodies that the client sends."""
    kinds, request = [], ask._http.request

    def note(**arguments):
        kinds.append(arguments["headers"]["content-type"].rpartition(".")[2])
        return request(**arguments)

    monkeypatch.setattr(ask._http, "request", note)
    return kinds


VECTORS = Letters().encode_queries(QUESTIONS)


def test_vectors_go_as_arrow_and_find_the_same(ask, sent, collaborators, url):
    pytest.importorskip("pyarrow", reason="the client's streams")
    index, parts = collaborators
    own = GuidedWalk(index, **parts)
    names = [["Lima"], ["Bergen", "Fes"], []]
    found = ask.search_vectors(VECTORS, entities=names, k=4)
    expected = own.search(vectors=VECTORS, entities=names, k=4)
    assert list(found) == ids(expected)
    assert np.array_equal(found.scores, expected.hits.scores)
    assert found.scores.dtype == np.float32
    assert (len(found), found.seq, found.timings["batch"]) == (3, 0, 3)
    few = ask.search_vectors(VECTORS, entities=[[3], [1, 2], [0]], k=12, allow=["p1", "p2"])
    assert list(few) == ids(own.search(vectors=VECTORS, entities=[[3], [1, 2], [0]], k=12, allow=["p1", "p2"]))
    assert few.counts.tolist() == [2, 2, 2]
    each = [["p1"], None, []]
    other = ask.search_vectors(VECTORS, entities=names, allow=each, k=3, recipe="phase-graph", options={"alpha": 0.7})
    by_json = ask.search(vectors=VECTORS, entities=names, allow=each, k=3, recipe="phase-graph", options={"alpha": 0.7})
    assert list(other) == ids(by_json)
    assert other.counts.tolist() == [1, 3, 0]
    assert np.isneginf(other.scores[0, 1:]).all()
    assert sent == ["stream", "stream", "stream", "application/json"]

    async def run():
        async with AsyncClient(url, timeout=60) as client:
            return await client.search_vectors(VECTORS, entities=names, k=4)

    assert list(asyncio.run(run())) == list(found)


def test_values_that_arrow_cannot_hold_are_sent_as_json(ask, sent, monkeypatch):
    names = [["Lima"], [3], []]
    mixed = ask.search_vectors(VECTORS, entities=names, k=4)
    assert list(mixed) == ids(ask.search(vectors=VECTORS, entities=names, k=4))
    tenant = ask.search_vectors(VECTORS, entities=[[]] * 3, allow={"tenant": "a"}, k=4)
    assert list(tenant) == ids(ask.search(vectors=VECTORS, entities=[[]] * 3, allow={"tenant": "a"}, k=4))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert ask.search_vectors(VECTORS, entities=[[]] * 3, k=4).counts.tolist() == [4, 4, 4]
    assert set(sent) == {"application/json"}


def test_bad_vectors(ask):
    with refused(InputError, "shape", "queries[0].vector"):
        ask.search_vectors(np.ones((2, 3)), entities=[[], []])
    with refused(InputError, "length", "queries"):
        ask.search_vectors(VECTORS, entities=[[]])
    with refused(InputError, "range", "k", given=51):
        ask.search_vectors(VECTORS, entities=[[]] * 3, k=51)


class Busy(BaseHTTPRequestHandler):
    """Answers the statuses of a list, one after another; None: no answer."""

    statuses: list[int | None]

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        status = self.statuses.pop(0)
        if status is None:
            self.rfile.read(1)  # until the client leaves
            return
        answer = b'{"results": [{"hits": []}], "seq": 0, "timings": {}}' if status == 200 else b'{"error": "?"}'
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def test_a_busy_server_is_asked_again_and_other_answers_are_errors(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            Busy.statuses = [429, 429, 200]
            with Client(url) as client:
                assert client.search(["x"]).hits == [[]]
            assert Busy.statuses == []
            Busy.statuses = [504]
            with Client(url, timeout=1000) as client, refused(EndpointError, "reply", status=504) as caught:
                client.search(["x"])
            assert caught.value.places == ("timeout of 60 s",)  # which is what the server got
            Busy.statuses = [429, None]  # the error has the given timeout, not what the first request left of it
            with Client(url, timeout=0.3) as client, refused(EndpointError, "timeout", "timeout", seconds=0.3):
                client.search(["x"])
        finally:
            server.shutdown()
            thread.join()


def test_a_server_without_pyarrow_gets_json():
    pytest.importorskip("pyarrow", reason="the client's streams")
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            Busy.statuses = [415, 200]
            with Client(f"http://127.0.0.1:{server.server_port}") as client:
                found = client.search_vectors(VECTORS[:1], entities=[[]])
            assert (found.ids, found.scores.shape, found.counts.tolist()) == ([[]], (1, 0), [0])
            assert Busy.statuses == []
        finally:
            server.shutdown()
            thread.join()


def test_without_httpx_the_extra_is_named():
    program = "import sys; sys.modules['httpx'] = None; import hopfuse.client as c; c.Client('http://x')"
    done = processes.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'hopfuse[client]'" in done.stderr


# ---- Reading passages -----------------------------------------------------------------------------------------------

SMALL = {name: new_key() for name in ("a", "all")}


@pytest.fixture(scope="module")
def keyed(path):
    """A server with a key that sees half of the passages."""
    keys = {"a": {"sha256": SMALL["a"][1], "filter": {"tenant": "a"}}, "all": {"sha256": SMALL["all"][1]}}
    with running(configured(path, keys=keys)) as url:
        yield url


def test_a_passage_by_its_id(ask, url, keyed):
    expected = {"id": "p3", "title": "No. 3", "text": TEXTS[3], "metadata": {"tenant": "b", "number": 3}}
    assert ask.passage("p3") == ask.passage("p3", index="cities", at_least=0) == expected
    with refused(InputError, "unknown", "id", given="nope"):
        ask.passage("nope")
    with refused(InputError, "unknown", "index"):
        ask.passage("p3", index="nope")
    with refused(InputError, "type", "id", given="NoneType"):
        ask.passage(None)
    with Client(keyed, key=SMALL["a"][0], timeout=60) as client:
        assert client.passage("p2")["metadata"] == {"tenant": "a", "number": 2}
        errors = []
        for id in ("p3", "x3"):  # a hidden one, and one that does not exist
            with refused(InputError, "unknown", "id", given=id) as caught:
                client.passage(id)
            errors.append(str(caught.value).replace(id, "ID"))
        assert errors[0] == errors[1]
    for key, given in ((None, "is missing"), ("wrong", "is none of the server's")):
        with Client(keyed, key=key, timeout=60) as client:
            for call in (lambda client: client.passage("p2"), lambda client: client.search("x"), Client.indexes):
                with refused(EndpointError, "unauthorized", "key", given=given, url=keyed):
                    call(client)

    async def run():
        async with AsyncClient(url, timeout=60) as client:
            return await client.passage("p3", index="cities")

    assert asyncio.run(run()) == expected


def test_passages_page_by_page(url, keyed):
    everything = sorted(f"p{at}" for at in range(len(TEXTS)))
    for key, seen in (("all", everything), ("a", [id for id in everything if int(id[1:]) % 2 == 0])):
        with Client(keyed, key=SMALL[key][0], timeout=60) as client:
            for limit in (None, 1, 5):
                pages = list(client.passages(limit=limit))
                assert [one["id"] for page in pages for one in page] == seen
                assert {len(page) for page in pages[:-1]} <= {limit}
                assert [page.after for page in pages] == [page.passages[-1]["id"] for page in pages[:-1]] + [None]
                assert {page.seq for page in pages} == {0}
            assert [one for page in client.passages() for one in page] == [client.passage(id) for id in seen]
            assert [one["id"] for page in client.passages(after=seen[1], index="cities") for one in page] == seen[2:]

    async def run():
        async with AsyncClient(url, timeout=60) as client:
            return [one["id"] async for page in client.passages(limit=5) for one in page]

    assert asyncio.run(run()) == everything


def test_ids_of_any_characters_are_read_and_deleted(tmp_path):
    for at, ids in enumerate((["..", ".", "a/b", "ä ö?#&=", "%2F", "p"], [7, -3, 0])):
        passages = [{"id": id, "text": f"About {id}."} for id in ids]
        vectors = Letters().encode_passages([one["text"] for one in passages])
        hf.Index.build(passages=passages, vectors=vectors, encoder=Letters()).save(tmp_path / str(at))
        index = {"cities": {"path": str(tmp_path / str(at)), "writable": True}}
        with running(configured("", indexes=index)) as url, Client(url, timeout=60) as client:
            assert [client.passage(id) for id in ids] == passages
            assert [one["id"] for page in client.passages(limit=1) for one in page] == sorted(ids)
            seq = [client.delete_passage(id, timeout=30) for id in ids[1:]][-1]
            assert [one["id"] for page in client.passages(at_least=seq) for one in page] == ids[:1]


def test_a_scroll_goes_on_after_its_last_passage_is_deleted(tmp_path):
    index = {"cities": {"path": save(tmp_path), "writable": True}}
    with running(configured("", indexes=index)) as url, Client(url, timeout=60) as client:
        found = []
        for page in client.passages(limit=2):
            found += [one["id"] for one in page]
            client.search(QUESTIONS[:1], at_least=client.delete_passage(page.passages[-1]["id"]))
        assert found == sorted(f"p{at}" for at in range(len(TEXTS)))


@pytest.mark.parametrize("most", [60_000, 30_000])
def test_a_timeout_may_be_longer_than_what_the_server_allows(tmp_path, most):
    index = {"cities": {"path": save(tmp_path), "writable": True}}
    with running(configured("", f"[limits]\nmax_timeout_ms = {most}\n", indexes=index)) as url:

        def asked(call):
            with Client(url, timeout=120) as client:
                return call(client)

        assert asked(lambda client: client.search(QUESTIONS[:1])).hits
        assert asked(lambda client: client.search_vectors(VECTORS[:1], entities=[["Lima"]])).ids
        assert asked(lambda client: client.passage("p3"))["id"] == "p3"
        assert len(asked(lambda client: next(client.passages()))) == len(TEXTS)
        assert asked(lambda client: client.add_passages([{"id": "new", "text": "Here."}])) == 1
        assert asked(lambda client: client.delete_passage("p3")) == 2


def test_a_page_is_waited_for_within_the_timeout(url):
    with Client(url, timeout=0.3) as client:
        for read in (lambda: client.passage("p3", at_least=1), lambda: next(client.passages(at_least=1))):
            with refused(EndpointError, "timeout", "at_least"):
                read()


def test_values_of_python_are_sent_as_json(tmp_path):
    """Times and NumPy's numbers, in metadata, conditions and times of searches; nothing is sent of what is no value."""
    about = dict.fromkeys(("time", "valid_to"), "timestamp") | {"number": "int64"}
    hf.Index.build([], lexical="english", metadata_types=about).save(tmp_path)
    first = datetime(2024, 5, 1, 12, tzinfo=UTC)
    rows = [
        {"id": "a", "text": "A river.", "metadata": {"time": first, "number": np.int64(3)}},
        {"id": "b", "text": "The river.", "metadata": {"valid_to": np.datetime64("2024-06-01")}},
    ]
    indexes = {"texts": {"path": str(tmp_path), "writable": True}}
    with running(configured("", indexes=indexes), {}) as url, Client(url, timeout=60) as client:
        seq = client.add_passages(rows)
        assert {hit.id for hit in client.search("river", at_least=seq)[0]} == {"a", "b"}
        assert [hit.id for hit in client.search("river", allow={"time__ge": first})[0]] == ["a"]
        assert [hit.id for hit in client.search("river", at=np.datetime64("2024-07-01"))[0]] == ["a"]
        assert client.delete_passages(where={"number__in": {np.int64(3)}}, dry_run=True).passages == 1
        with refused(InputError, "type"):
            client.add_passages([{"id": "c", "text": "A sea.", "metadata": {"time": object()}}])
        assert client.passage("a")["metadata"] == {"time": "2024-05-01T12:00:00Z", "number": 3}
