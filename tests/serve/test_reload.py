"""A server that follows an index while a writer changes it: no request fails, and each answer is that of its seq."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pkgutil import resolve_name

import hopfuse as hf
import httpx
import pytest
from hopfuse.adapters.searcher import Searcher
from hopfuse.client import Client
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import RECIPES
from serve.served import CITIES, Letters, configured, running, save

QUESTIONS = [f"What is far from {city}?" for city in CITIES]


@pytest.fixture
def folder(tmp_path):
    return save(tmp_path / "index")


def metric(url, name):
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in httpx.get(f"{url}/metrics").text.splitlines()
        if line.startswith(name)
    }


def search(url, question, **more):
    return httpx.post(f"{url}/v1/search", json={"queries": [question], **more}, timeout=60)


def add(live, at, city="Ankara"):
    text = f"{city} is near, {at} times."
    with live.change() as change:
        change.add_passages(
            [{"id": f"new{at}", "text": text, "metadata": {"tenant": "a"}}], vectors=Letters().encode_passages([text])
        )
        change.add_edges([{"src": ("passage", f"new{at}"), "dst": ("entity", city), "type": "context"}])
    return change.seq


def expected(index, recipe, questions, k):
    searcher = RECIPES[recipe](index, encoder=Letters(), matcher=QuestionMatcher(index))
    found = searcher.search(questions, k=k)
    return [[(hit.id, hit.score, hit.text) for hit in row] for row in found]


@pytest.mark.parametrize(
    ("requests", "changes"), [(150, 6), pytest.param(5_000, 100, marks=pytest.mark.full)], ids=["few", "many"]
)
def test_no_request_fails_and_each_answer_is_that_of_its_seq(folder, requests, changes):
    states = {}
    with (
        hf.Index.open(folder, writable=True) as live,
        running(configured(folder, follow_seconds=0.01)) as url,
        ThreadPoolExecutor(4) as pool,
    ):
        answers, changed = [], threading.Event()

        def ask(number):
            with httpx.Client(base_url=url, timeout=60) as client:
                for at in range(number, requests, 4):
                    if at >= requests // 2:
                        changed.wait()
                    question = QUESTIONS[at % len(QUESTIONS)]
                    recipe = "phase-graph" if at % 5 == 0 else "guided-walk"
                    body = {"queries": [question], "k": 5, "recipe": recipe}
                    answers.append((question, recipe, client.post("/v1/search", json=body)))

        asking = [pool.submit(ask, number) for number in range(4)]
        states[0] = live.index
        try:
            for at in range(changes):
                seq = add(live, at, CITIES[at % 3])
                states[seq] = live.refresh()
                if at % 3 == 2:
                    live.compact()
                if at % 2:
                    assert search(url, QUESTIONS[0], at_least=seq, timeout_ms=60_000).json()["seq"] == seq
                    changed.set()
        finally:  # no thread waits for a change that is not made
            changed.set()
        for one in asking:
            one.result()
        assert {answer.status_code for *_, answer in answers} == {200}
        last = search(url, QUESTIONS[0], at_least=seq).json()
        assert last["seq"] == changes
        failures = metric(url, "hopfuse_reload_failures_total")
        assert set(failures.values()) <= {0.0}
    got = {}
    for question, recipe, answer in answers:
        hits = [(hit["id"], hit["score"], hit["text"]) for hit in answer.json()["results"][0]["hits"]]
        got.setdefault((answer.json()["seq"], recipe), []).append((question, hits))
    assert len({seq for seq, _ in got}) > 1
    for (seq, recipe), pairs in got.items():
        right = dict(zip(QUESTIONS, expected(states[seq], recipe, QUESTIONS, 5), strict=True))
        for question, hits in pairs:
            assert hits == right[question]


def await_turn(pool, url, live, at, read=None):
    """Add a passage for which a request waits already; by default a search."""
    asks = read or (lambda seq: search(url, QUESTIONS[0], at_least=seq, timeout_ms=60_000))
    waiting = pool.submit(asks, at + 1)
    while not any(metric(url, "hopfuse_seq_waiting").values()):
        pass
    assert add(live, at) == at + 1
    answer = waiting.result()
    assert answer.status_code == 200
    return answer


def test_a_request_that_waits_for_a_state_is_its_first_search(folder, monkeypatch):
    warmed, warm_up = [], hf.Retriever.warm_up
    monkeypatch.setattr(hf.Retriever, "warm_up", lambda own: (warmed.append(own.index.seq), warm_up(own))[1])
    with hf.Index.open(folder, writable=True) as live, ThreadPoolExecutor(1) as pool:
        with running(configured(folder, follow_seconds=3600)) as url:
            assert await_turn(pool, url, live, 0).json()["seq"] == 1
            assert set(warmed) == {0}
        with running(configured(folder, follow_seconds=0.01)) as url:
            assert await_turn(pool, url, live, 1).json()["seq"] == 2
            while 2 not in warmed:
                pass
            add(live, 2)
            while search(url, QUESTIONS[0]).json()["seq"] < 3:
                pass
            assert 3 in warmed


def test_a_state_whose_first_search_waited_is_continued_by_the_next(folder, monkeypatch):
    """Also what the request did not need: the rows of ids in a search, and the names in a read."""
    made = []

    def recorded(table, anew):
        return lambda index: (made.append((table, index.seq)), anew(index))[1]

    def read(seq):
        return httpx.get(f"{url}/v1/passages/new{seq - 1}", params={"at_least": seq}, timeout=60)

    for name in ("hopfuse.index.ids:_ROWS", "hopfuse.recipes._parts.seeding:_TABLES"):
        table = resolve_name(name)
        monkeypatch.setattr(table, "_anew", recorded(name, table._anew))
    with (
        running(configured(folder, follow_seconds=3600)) as url,
        hf.Index.open(folder, writable=True) as live,
        ThreadPoolExecutor(1) as pool,
    ):
        made.clear()
        for at in range(10):
            await_turn(pool, url, live, at, read if at % 3 else None)
            answer = search(url, QUESTIONS[0]) if at % 2 else httpx.get(f"{url}/v1/passages/new{at}")
            assert answer.status_code == 200
        assert made == []


def test_a_seq_that_does_not_come_is_504_and_names_its_field(folder):
    with running(configured(folder)) as url:
        refused = search(url, QUESTIONS[0], at_least=1, timeout_ms=1000)
        assert refused.status_code == 504
        assert refused.json()["error"]["field"] == "at_least"
        assert refused.json()["error"]["values"] == {"given": 1, "seq": 0}
        assert search(url, QUESTIONS[0], at_least=0).status_code == 200
        assert search(url, QUESTIONS[0], at_least=-1).json()["error"]["field"] == "at_least"


@pytest.mark.parametrize("recipe", ["guided-walk", "phase-graph"])
def test_latest_is_what_another_process_has_committed_before_the_request(folder, recipe):
    """In a search by JSON and by Arrow, in reads of passages and in clients, though the server would not look yet."""
    with (
        running(configured(folder, follow_seconds=3600)) as url,
        hf.Index.open(folder, writable=True) as live,
        Client(url, timeout=60) as client,
    ):
        asks = (
            lambda: search(url, QUESTIONS[0], at_least="latest", recipe=recipe).json()["seq"],
            lambda: client.search(QUESTIONS[0], at_least="latest", recipe=recipe).seq,
            lambda: client.search_vectors(Letters().encode_queries(["x"]), entities=[[]], at_least="latest").seq,
            lambda: int(client.passage(f"new{at}", at_least="latest")["id"].removeprefix("new")) + 1,
            lambda: next(iter(client.passages(at_least="latest"))).seq,
        )
        for at, ask in enumerate(asks):
            seq = add(live, at, CITIES[at % 3])
            assert ask() == seq == at + 1
        assert search(url, QUESTIONS[0]).json()["seq"] == seq
        add(live, 9)
        hits = Searcher(url, timeout=60).search(["What is near Ankara?"], k=50, at_least="latest")[0]
        assert "new9" in [hit.id for hit in hits]
        found = search(url, QUESTIONS[0], at_least="newest").json()["error"]
        assert (found["code"], found["field"]) == ("choice", "at_least")
        assert found["values"]["given"] == "newest"
        assert found["values"]["allowed"] == "a whole number or latest"


@pytest.mark.full
def test_a_state_that_cannot_be_served_leaves_the_one_before(folder, caplog, monkeypatch):
    of_state = hf.Retriever.of_state

    def refusing(retriever, index):
        if "Bergen" not in list(index.entity_names):
            raise RuntimeError("no Bergen")
        return of_state(retriever, index)

    monkeypatch.setattr(hf.Retriever, "of_state", refusing)
    with (
        running(configured(folder, follow_seconds=0.01)) as url,
        hf.Index.open(folder, writable=True) as live,
    ):
        with live.change() as change:
            change.delete_entities(["Bergen"])
        while not any(metric(url, "hopfuse_reload_failures_total").values()):
            pass
        answer = search(url, QUESTIONS[0])
        assert (answer.status_code, answer.json()["seq"]) == (200, 0)
        assert "stays at seq 0: no Bergen" in caplog.text
        with live.change() as change:
            change.add_entities(["Bergen"])
        assert search(url, QUESTIONS[0], at_least=2).json()["seq"] == 2


@pytest.mark.full
def test_an_index_may_lose_all_its_passages_and_get_new_ones(folder):
    with running(configured(folder)) as url, hf.Index.open(folder, writable=True) as live:
        with live.change() as change:
            change.delete_passages(list(live.index.passage_ids))
        emptied = search(url, QUESTIONS[0], at_least=1)
        assert (emptied.status_code, emptied.json()["results"]) == (200, [{"hits": []}])
        add(live, 1)
        assert [hit["id"] for hit in search(url, QUESTIONS[0], at_least=2).json()["results"][0]["hits"]] == ["new1"]


def test_states_that_are_not_searched_any_more_are_let_go(folder, monkeypatch):
    made, of_state = [], hf.Retriever.of_state

    def watched(retriever, index):
        made.append(weakref.ref(index))
        return of_state(retriever, index)

    monkeypatch.setattr(hf.Retriever, "of_state", watched)
    gc.disable()  # they are in no circle of references
    try:
        with running(configured(folder)) as url, hf.Index.open(folder, writable=True) as live:
            for at in range(3):
                seq = add(live, at)
                options = {"damping": 0.3}
                assert search(url, QUESTIONS[0], at_least=seq, recipe="phase-graph", options=options).status_code == 200
            assert search(url, QUESTIONS[0]).status_code == 200
            until = time.monotonic() + 600  # a connection that is not closed yet holds the state of its request
            while not all(index() is None for index in made[:2]) and time.monotonic() < until:
                time.sleep(0.01)
            assert [index() is None for index in made] == [True, True, False]
    finally:
        gc.enable()
