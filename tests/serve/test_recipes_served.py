"""Every recipe through the server, many callers at once: its answers are those that the library gives alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import hopfuse as hf
import httpx
import pytest
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import RECIPES
from serve.served import CITIES, TEXTS, Letters, configured, running

QUESTIONS = [f"What is far from {a}, and near {b}?" for a, b in zip(CITIES, CITIES[3:] + CITIES[:3], strict=True)]
PAIRS = [[at for at, city in enumerate(CITIES) if city in text] for text in TEXTS]


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
    with running(configured(path), with_words) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def with_words(index, config):
    from hopfuse.serve import Collaborators

    return Collaborators(Letters(), QuestionMatcher(index), hf.lexical.FTS5.build(index.texts_to_index()))


def own(path, name, options):
    """The recipe itself, with what reads questions for it."""
    index = hf.Index.open(path)
    made = with_words(index, None)
    parts = {"encoder": made.encoder}
    if name != "triple-hybrid":
        parts["matcher"] = made.matcher
    if name == "hybrid-rrf":
        parts["lexical"] = made.lexical
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
