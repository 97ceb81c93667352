"""Every recipe through the server, many callers at once: its answers are those that the library gives alone."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import hopfuse as hf
import httpx
import numpy as np
import processes
import pytest
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import RECIPES
from hopfuse.serve import Service
from refusals import refused
from serve.served import CITIES, TEXTS, Letters, configured, running

QUESTIONS = [f"What is far from {a}, and near {b}?" for a, b in zip(CITIES, CITIES[3:] + CITIES[:3], strict=True)]
QUESTIONS[::3] = map(str.lower, QUESTIONS[::3])
PAIRS = [[at for at, city in enumerate(CITIES) if city in text] for text in TEXTS]


class Capitals(Letters):
    """An encoder that distinguishes case."""

    def encode_queries(self, texts):
        return super().encode_queries(texts) + np.array([[sum(map(str.isupper, text))] for text in texts], np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """An index with everything that recipes read: facts, vectors of entities, edges of several types."""
    count = len(TEXTS)
    context = [{"src": at, "dst": count + city, "type": "context"} for at, pair in enumerate(PAIRS) for city in pair]
    far = [{"src": count + a, "dst": count + b, "type": "relation", "passage": at} for at, (a, b) in enumerate(PAIRS)]
    folder = tmp_path_factory.mktemp("whole") / "index"
    hf.Index.build(
        passages=[{"id": f"p{at}", "title": f"No. {at}", "text": text} for at, text in enumerate(TEXTS)],
        vectors=Letters().encode_passages(TEXTS),
        entities=CITIES,
        entity_vectors=Letters().encode_passages(CITIES),
        graph=context + far,
        facts=[
            {"head": CITIES[a], "relation": "lies far from", "tail": CITIES[b], "passage": at}
            for at, (a, b) in enumerate(PAIRS)
        ],
        encoder=Letters(),
        metric="cosine",
    ).save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def client(path):
    with running(configured(path), {"cities": Capitals()}) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def own(path, name, options):
    """The recipe itself, with what reads questions for it."""
    index = hf.Index.open(path)
    parts = {"encoder": Capitals()}
    if name != "triple-hybrid":
        parts["matcher"] = QuestionMatcher(index)
    if name in ("hybrid-rrf", "plain-hybrid"):
        parts["lexical"] = hf.lexical.words_of(index)
    if name == "policy-rag":
        parts["fact_vectors"] = Letters().encode_passages(index.facts.texts(index.entity_names))
    return RECIPES[name](index, RECIPES[name].Config(**options), **parts)


CASES = [
    *(pytest.param(name, {}, id=name) for name in RECIPES),
    pytest.param("guided-walk", {"damping": 0.7}, id="guided-walk, damping", marks=pytest.mark.full),
    pytest.param("phase-graph", {"alpha": 0.9, "damping": 0.3}, id="phase-graph, alpha", marks=pytest.mark.full),
    pytest.param("triple-hybrid", {"mode": "vector"}, id="triple-hybrid, vector"),
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_answers_are_the_librarys_own(client, path, name, options):
    recipe = own(path, name, options)

    def ask(at):
        query = {"text": QUESTIONS[at % len(QUESTIONS)]}
        if at % 3 == 1 and name != "triple-hybrid":
            query["allow"] = [f"p{(at + step) % len(TEXTS)}" for step in range(5)]
        body = {"queries": [query], "k": 2 + at % 4, "recipe": name, "options": options, "fields": []}
        answer = client.post("/v1/search", json=body).raise_for_status().json()
        return query, body["k"], [(hit["id"], hit["score"]) for hit in answer["results"][0]["hits"]]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(24)))
    for query, k, hits in answers:
        alone = recipe.search([query["text"]], allow=query.get("allow"), k=k)
        assert hits == [(hit.id, hit.score) for hit in alone[0]]
        assert hits


class Held(Letters):
    """An encoder that reads passages when it may."""

    def __init__(self):
        self.may, self.read = threading.Event(), []

    def encode_passages(self, texts):
        assert self.may.wait(600)
        self.read.append(len(texts))
        return super().encode_queries(texts)


def test_a_recipe_that_is_made_for_its_first_request_says_so(path):
    encoder = Held()
    body = {"queries": [QUESTIONS[0]], "recipe": "policy-rag"}
    with running(configured(path), {"cities": encoder}) as url, httpx.Client(base_url=url, timeout=60) as client:
        late = client.post("/v1/search", json={**body, "timeout_ms": 200})
        encoder.may.set()
        assert late.status_code == 504
        error = late.json()["error"]
        assert (error["code"], error["field"], error["values"]["recipe"]) == ("timeout", "timeout_ms", "policy-rag")
        assert client.post("/v1/search", json=body).status_code == 200
    assert len(encoder.read) == 1


def test_recipes_that_are_named_are_made_before_the_server_is_ready(path):
    encoder = Held()
    encoder.may.set()
    config = configured("", indexes={"cities": {"path": path, "recipes": ["policy-rag"]}}, request_options=False)
    with running(config, {"cities": encoder}) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert len(encoder.read) == 1  # before any request
        body = {"queries": [QUESTIONS[0]], "recipe": "policy-rag"}
        assert client.post("/v1/search", json=body).status_code == 200
        refused = client.post("/v1/search", json={**body, "recipe": "hybrid-rrf"})
        assert (refused.status_code, refused.json()["error"]["field"]) == (403, "recipe")
        assert refused.json()["error"]["values"]["allowed"] == "only guided-walk, policy-rag"
        assert client.post("/v1/search", json={**body, "options": {"top_k": 3}}).status_code == 403
        assert len(encoder.read) == 1


def test_options_of_a_request_change_those_of_the_index(path):
    own = {"weights": [1, 0, 2], "rank_constant": 9}
    config = configured("", indexes={"cities": {"path": path, "recipe": "hybrid-rrf", "options": own}})
    with running(config) as url, httpx.Client(base_url=url, timeout=60) as client:
        body = {"queries": [QUESTIONS[0]], "options": {"fusion": "convex"}}
        assert client.post("/v1/search", json=body).status_code == 200
        error = client.post("/v1/search", json=body | {"options": {"fusion": "convex", "rank_constant": 9}}).json()[
            "error"
        ]
        assert (error["code"], error["field"]) == ("unused", "options.rank_constant")


def test_a_recipe_that_is_named_and_cannot_be_made_is_refused_at_the_start(path):
    config = configured("", indexes={"cities": {"path": path, "recipes": ["nope"]}})
    with refused(hf.errors.InputError, "choice", "recipe"):
        Service(config).open_all()


@contextlib.contextmanager
def by_command(path):
    """The address of ``hopfuse serve``, while it runs."""
    command = [sys.executable, "-m", "hopfuse", "serve", str(path), "--port", "0"]
    with processes.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
            while httpx.get(f"{url}/health/ready").status_code != 200:
                time.sleep(0.01)
            yield url
        finally:
            process.terminate()


@pytest.mark.parametrize("has_vectors", [False, True])
def test_a_graph_without_entities_is_asked_by_text(tmp_path, has_vectors):
    links = [{"src": at, "dst": at + 1} for at in range(len(TEXTS) - 1)]
    rows = [{"id": f"p{at}", "text": text, "metadata": {"even": at % 2 == 0}} for at, text in enumerate(TEXTS)]
    vectors = Letters().encode_passages(TEXTS)
    index = hf.Index.build(passages=rows, graph=links, vectors=vectors if has_vectors else None)
    index.save(tmp_path / "index")
    query = {"text": f"What is said of {CITIES[3]}?"}
    with (
        by_command(tmp_path / "index") as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        assert client.get("/v1/indexes").json()["indexes"][0]["entities"] == 0
        if has_vectors:
            refused = client.post("/v1/search", json={"queries": [query]})
            assert refused.status_code == 400
            error = refused.json()["error"]
            assert (error["code"], error["field"]) == ("missing", "queries[0].vector")
            query["vector"] = vectors[3].tolist()
        for allow in (None, {"even": True}):
            found = client.post("/v1/search", json={"queries": [{**query, "allow": allow}], "k": 3}).json()
            ids = [hit["id"] for hit in found["results"][0]["hits"]]
            assert ids
            assert allow is None or not {int(id[1:]) % 2 for id in ids} - {0}
            assert allow is not None or "p3" in ids


def test_an_index_that_a_recipe_cannot_walk_is_the_field_of_the_refusal(tmp_path):
    rows = [{"id": f"p{at}", "text": text, "document": "d", "position": at} for at, text in enumerate(TEXTS[:3])]
    hf.Index.build(rows, reader="words", encoder=Letters()).save(tmp_path / "index")
    with running(configured(str(tmp_path / "index"))) as url:
        answer = httpx.post(f"{url}/v1/search", json={"queries": [QUESTIONS[0]], "recipe": "policy-rag"}, timeout=60)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["field"]) == (400, "unsupported", "index")
