"""``POST /v1/search`` on a real server: answers are the recipe's own, whoever else asks; bad input is refused."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import RECIPES
from serve.served import CITIES, DIM, Letters, configured, running, save

QUESTIONS = [f"What is far from {a}, and from {b}?" for a, b in zip(CITIES, CITIES[1:] + CITIES[:1], strict=True)]


@pytest.fixture(scope="module")
def own(path):
    """The recipes themselves."""
    index = hf.Index.open(path)
    parts = {"encoder": Letters(), "matcher": QuestionMatcher(index)}
    words = {"hybrid-rrf": {"lexical": hf.lexical.words_of(index)}}
    names = ("guided-walk", "phase-graph", "hybrid-rrf")
    return {name: RECIPES[name](index, **parts, **words.get(name, {})) for name in names}


def hits_of(found, b=0):
    return [
        {"id": hit.id, "score": hit.score, "title": hit.title, "text": hit.text, "metadata": hit.metadata}
        for hit in found[b]
    ]


def test_answers_are_the_recipes_own(client, own):
    answer = client.post("/v1/search", json={"queries": QUESTIONS, "k": 5}).raise_for_status().json()
    found = own["guided-walk"].search(QUESTIONS, k=5)
    assert [one["hits"] for one in answer["results"]] == [hits_of(found, b) for b in range(len(QUESTIONS))]
    assert answer["seq"] == 0
    assert answer["timings"]["batch"] == 8  # 12 queries in two parts
    assert set(answer["timings"]) == {"queued_ms", "batch", "search_ms"}


def test_many_callers_get_what_each_would_get_alone(url, own):
    cases = []
    for at, question in enumerate(QUESTIONS * 4):
        recipe = ("guided-walk", "phase-graph", "hybrid-rrf")[at % 3]
        k = (3, 7)[at % 2]
        query = {"text": question}
        if at % 5 == 0:
            query["entities"] = [CITIES[at % 12]]
        if at % 7 == 0:
            query["allow"] = [f"p{(at + step) % 12}" for step in range(4)]
        if at % 4 == 0:
            query["vector"] = [float(x) for x in np.linspace(0.1, 1, DIM) * (at + 1)]
        cases.append((recipe, k, query))

    def ask(case):
        recipe, k, query = case
        with httpx.Client(base_url=url, timeout=60) as client:
            body = {"queries": [query], "k": k, "recipe": recipe}
            return client.post("/v1/search", json=body).raise_for_status().json()["results"][0]["hits"]

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, cases))
    for (recipe, k, query), hits in zip(cases, answers, strict=True):
        alone = own[recipe].search(
            [query["text"]],
            vectors=None if "vector" not in query else [query["vector"]],
            entities=None if "entities" not in query else [query["entities"]],
            allow=query.get("allow"),
            k=k,
        )
        assert hits == hits_of(alone)


def test_integers_in_a_filter_are_ids_of_passages(tmp_path):
    ids = [5, 6, 7, 8]  # of rows 3 to 6
    with running(configured(save(tmp_path, ids=2))) as url:
        index = hf.Index.open(tmp_path)
        alone = RECIPES["guided-walk"](index, encoder=Letters(), matcher=QuestionMatcher(index))
        for each in ([ids] * 2, [ids, ids[1:]]):
            queries = [{"text": text, "allow": allow} for text, allow in zip(QUESTIONS[3:5], each, strict=True)]
            answer = httpx.post(f"{url}/v1/search", json={"queries": queries, "k": 4}).raise_for_status().json()
            found = alone.search(QUESTIONS[3:5], allow=each, k=4)
            assert [one["hits"] for one in answer["results"]] == [hits_of(found, b) for b in range(2)]
            assert [{hit.id for hit in row} <= set(row_ids) for row, row_ids in zip(found, each, strict=True)] == [
                True
            ] * 2


def test_vectors_as_base64_and_numbers_of_entities(client, own):
    vector = np.linspace(1, 2, DIM, dtype=np.float32)
    given = base64.b64encode(vector.astype("<f4").tobytes()).decode()
    body = {"queries": [{"vector_base64": given, "entities": [3]}], "recipe": "phase-graph", "k": 4}
    answer = client.post("/v1/search", json=body).raise_for_status().json()
    found = own["phase-graph"].search(vectors=vector[None], entities=[[3]], k=4)
    assert answer["results"][0]["hits"] == hits_of(found)


def test_options_trace_and_fields(client, own, path):
    body = {
        "queries": [QUESTIONS[0], {"text": QUESTIONS[1], "allow": []}, QUESTIONS[2]],
        "recipe": "phase-graph",
        "k": 2,
    }
    body |= {
        "options": {"alpha": 0.6, "method": {"name": "rrf", "rank_constant": 3}},
        "trace": True,
        "fields": ["title"],
    }
    answer = client.post("/v1/search", json=body).raise_for_status().json()["results"]
    changed = RECIPES["phase-graph"](
        hf.Index.open(path),
        alpha=0.6,
        method=hf.fusion.RRF(rank_constant=3),
        encoder=Letters(),
        matcher=own["phase-graph"].matcher,
    )
    found = changed.search(QUESTIONS[:3], k=2, trace=True)
    for b in (0, 2):
        expected = [{"id": hit.id, "score": hit.score, "title": hit.title} for hit in found[b]]
        assert answer[b]["hits"] == expected
        assert answer[b]["trace"]["seeds"] == found.traces[b]["seeds"]
        assert "query" not in answer[b]["trace"]
    assert answer[1]["hits"] == []


def test_a_traced_request_shares_no_batch(url, own):
    traced = {"queries": [QUESTIONS[0]] * 2, "k": 3, "trace": True}

    def ask(body):
        with httpx.Client(base_url=url, timeout=60) as client:
            return client.post("/v1/search", json=body).raise_for_status().json()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, [traced, {"queries": [QUESTIONS[0]], "k": 3}] * 12))
    assert {answer["timings"]["batch"] for answer in answers[::2]} == {2}
    assert all(
        answer["results"][0]["hits"] == hits_of(own["guided-walk"].search(QUESTIONS[:1], k=3)) for answer in answers
    )


def test_no_more_hits_than_passages(client):
    answer = client.post("/v1/search", json={"queries": [QUESTIONS[0]], "k": 50}).raise_for_status().json()
    assert len(answer["results"][0]["hits"]) == 12


#: What is sent, and the code and the field of the refusal, with the value given where it is shown.
REFUSED = [
    (b"", "syntax", None),
    (b"{", "syntax", None),
    (b'{"queries": ["\xff"]}', "syntax", None),
    (b'{"queries": [NaN]}', "syntax", None),
    (b'{"queries": [{"text": "x", "allow": {"number": {"a": [1]}, "\xff": 1}}]}', "type", "queries[0].allow"),
    (b'{"queries": [{"text": "x", "allow": {"number": {"a": [1], "\xff": 1}}}]}', "type", "queries[0].allow.number"),
    (b'{"queries": [{"text": "x", "\xff": 1, "allow": {"number": {"a": [1]}}}]}', "syntax", None),
    (b"[]", "type", None),
    (b'{"options": {"a": ' + b"[" * 20_000, "syntax", None),
    ({}, "missing", "queries"),
    ({"queries": []}, "empty", "queries"),
    ({"queries": "x"}, "type", "queries"),
    ({"queries": [1]}, "type", "queries[0]"),
    ({"queries": ["x"] * 41}, "limit", "queries", "41 entries"),
    ({"queries": [" "]}, "empty", "queries[0].text", " "),
    ({"queries": ["x" * 201]}, "limit", "queries[0].text", "201 characters"),
    ({"queries": ["x", {"txt": "y"}]}, "unknown", "queries[1].txt"),
    ({"queries": [{}]}, "missing", "queries[0].vector"),
    ({"queries": [{"vector": [1.0] * DIM}]}, "missing", "queries[0].entities"),
    ({"queries": [{"text": "x", "vector": [1.0]}]}, "shape", "queries[0].vector", 1),
    ({"queries": [{"text": "x", "vector": []}]}, "shape", "queries[0].vector", 0),
    ({"queries": [{"text": "x", "vector": [1e39] * DIM}]}, "finite", "queries[0].vector[0]"),
    ({"queries": [{"text": "x", "vector": [0.0] * DIM}]}, "zero", "queries[0].vector"),
    (
        {"queries": [{"text": "x", "vector": [1.0] * DIM, "vector_base64": "AA=="}]},
        "conflict",
        "queries[0].vector_base64",
    ),
    ({"queries": [{"text": "x", "vector_base64": "*"}]}, "syntax", "queries[0].vector_base64"),
    ({"queries": [{"text": "x", "vector_base64": "AAA="}]}, "shape", "queries[0].vector_base64", 2),
    ({"queries": [{"text": "x", "vector_base64": "AADAfw=="}]}, "finite", "queries[0].vector_base64[0]"),
    ({"queries": [{"text": "x", "entities": ["y"] * 5}]}, "limit", "queries[0].entities", "5 entries"),
    ({"queries": [{"text": "x", "entities": [12]}]}, "unknown", "queries[0].entities[0]", 12),
    ({"queries": [{"text": "x", "entities": [-1]}]}, "unknown", "queries[0].entities[0]", -1),
    ({"queries": [{"text": "x", "entities": [True]}]}, "type", "queries[0].entities[0]"),
    ({"queries": [{"text": "x", "allow": ["p0"] * 21}]}, "limit", "queries[0].allow", "21 entries"),
    ({"queries": [{"text": "x", "allow": ["zz"]}]}, "unknown", "queries[0].allow", "zz"),
    ({"queries": [{"text": "x", "allow": [0]}]}, "type", "queries[0].allow", 0),
    ({"queries": [{"text": "x", "allow": {}}]}, "empty", "queries[0].allow"),
    ({"queries": [{"text": "x", "allow": {"nope": 1}}]}, "unknown", "queries[0].allow.nope", "nope"),
    ({"queries": [{"text": "x", "allow": {"number__any": 1}}]}, "type", "queries[0].allow.number__any", "int"),
    ({"queries": [{"text": "x", "allow": {"number": {"a": [1]}}}]}, "type", "queries[0].allow.number", "{'a': [1]}"),
    ({"queries": ["x"], "k": 0}, "range", "k"),
    ({"queries": ["x"], "k": 51}, "range", "k", 51),
    ({"queries": ["x"], "k": 10**30}, "range", "k", 10**30),
    ({"queries": ["x"], "k": 2.5}, "range", "k"),
    ({"queries": ["x"], "timeout_ms": 0}, "range", "timeout_ms"),
    ({"queries": ["x"], "timeout_ms": "1"}, "range", "timeout_ms"),
    ({"queries": ["x"], "timeout_ms": 10**9}, "range", "timeout_ms", 10**9),
    ({"queries": ["x"], "recipe": "nope"}, "choice", "recipe", "nope"),
    ({"queries": ["x"], "recipe": "triple-hybrid"}, "missing", "index"),
    ({"queries": ["x"], "options": {"nope": 1}}, "unknown", "options.nope"),
    ({"queries": ["x"], "options": {"damping": "a"}}, "range", "options.damping", "a"),
    ({"queries": ["x"], "options": {"damping": [1, {"a": None}]}}, "range", "options.damping"),
    ({"queries": ["x"], "options": {"edge_weights": {"nope": 1}}}, "unknown", "options.edge_weights", "nope"),
    ({"queries": ["x"] * 6, "k": 9, "trace": True}, "limit", "trace"),
    ({"queries": ["x"], "fields": ["body"]}, "choice", "fields[0]"),
    ({"queries": ["x"], "more": 1}, "unknown", "more"),
]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_by_code_and_field(client, case):
    body, code, field, *given = case
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = client.post("/v1/search", headers={"content-type": "application/json"}, **sent)
    error = answer.json()["error"]
    assert (answer.status_code, error["class"]) == (400, "InputError")
    assert (error["code"], error["field"]) == (code, field)
    assert not given or error["values"]["given"] == given[0]
    assert "/" not in answer.text.replace("0 .. ", "")  # no path of the machine


@pytest.mark.parametrize(
    ("body", "given", "allowed"),
    [
        ({"queries": ["x"], "k": 0}, 0, "a whole number >= 1"),
        ({"queries": ["x"], "at": [1]}, [1], "a number or a string or null"),
        ({"queries": "x"}, "x", "a list"),
        ({"queries": [{"text": 3}]}, 3, "a string or null"),
        ({"queries": ["x"], "trace": "y" * 90}, '"' + "y" * 58 + "…", "true or false"),
    ],
)
def test_a_refusal_says_what_was_given_and_what_is_allowed(client, body, given, allowed):
    values = client.post("/v1/search", json=body).json()["error"]["values"]
    assert (values["given"], values["allowed"]) == (given, allowed)


def test_a_refusal_says_that_a_field_is_one_of_a_query(client):
    error = client.post("/v1/search", json={"queries": ["x"], "allow": ["p1"]}).json()["error"]
    assert (error["code"], error["field"]) == ("unknown", "allow")
    assert error["message"].startswith("allow does not exist here, but in an entry of queries; allowed: queries, k,")


def test_other_refusals(client):
    answer = client.post("/v1/search", json={"queries": ["x"], "index": "nope"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (404, "index")
    answer = client.post("/v1/search", json={"queries": ["x" * 100] * 2000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    answer = client.post("/v1/search", content=iter([b"x" * 60_000] * 2))
    assert answer.status_code == 413
    answer = client.post("/v1/search", content=b"{}", headers={"content-type": "text/xml"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported")
    assert client.get("/v1/search").status_code == 405
    assert client.get("/nope").json()["error"]["code"] == "unknown"


def test_one_bad_query_is_refused_alone(url, own):
    good = {"text": QUESTIONS[0], "vector": [1.0] * DIM}
    bad = {"text": QUESTIONS[0], "vector": [0.0] * DIM}

    def ask(query):
        with httpx.Client(base_url=url, timeout=60) as client:
            return client.post("/v1/search", json={"queries": [query], "k": 3})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, [good, bad] * 12))
    expected = hits_of(own["guided-walk"].search([QUESTIONS[0]], vectors=[[1.0] * DIM], k=3))
    assert [answer.status_code for answer in answers] == [200, 400] * 12
    assert all(answer.json()["results"][0]["hits"] == expected for answer in answers[::2])


def test_filters_by_metadata(client, own):
    conditions = {"tenant": "a", "number__ge": 3}
    body = {"queries": [{"text": QUESTIONS[0], "allow": conditions}], "k": 12}
    answer = client.post("/v1/search", json=body).raise_for_status().json()
    found = own["guided-walk"].search([QUESTIONS[0]], allow=hf.where(**conditions), k=12)
    assert answer["results"][0]["hits"] == hits_of(found)
    assert {hit["metadata"]["tenant"] for hit in answer["results"][0]["hits"]} == {"a"}


def test_pages_of_other_sites_may_not_ask(client):
    body = {"queries": ["x"]}
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "["}):
        answer = client.post("/v1/search", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), headers
    own_page = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post("/v1/search", json=body, headers=own_page).status_code == 200
    assert "access-control-allow-origin" not in client.post("/v1/search", json=body, headers=own_page).headers
