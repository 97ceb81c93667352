"""Notes beside hits by every protocol, errors where strict, and hits per document."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import hopfuse as hf
import httpx
import pytest
from hopfuse.client import Client
from hopfuse.errors import InputError
from hopfuse.serve import new_key
from refusals import refused
from serve.served import DIM, Letters, configured, running, small_index

QUESTION = "What is far from Ankara?"
NOTE = ("unknown", "entities[1]")


@pytest.fixture(scope="module")
def keys():
    return {name: new_key() for name in ("a", "all")}


@pytest.fixture(scope="module")
def url(tmp_path_factory, keys):
    """A server with a key for three passages, and one for all."""
    folder = tmp_path_factory.mktemp("noted") / "index"
    small_index().save(folder)
    about = {"a": {"sha256": keys["a"][1], "filter": {"number__lt": 3}}, "all": {"sha256": keys["all"][1]}}
    with running(configured(str(folder), keys=about, mcp=True)) as url:
        yield url


@pytest.fixture(scope="module")
def client(url, keys):
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {keys['all'][0]}"}, timeout=60) as client:
        yield client


def query(**given):
    return {"text": QUESTION, "entities": ["Ankara", "Atlantis"], **given}


def codes(notes):
    return [(one["code"], one["field"]) for one in notes]


def test_an_unknown_name_is_a_note_and_where_strict_an_error(client):
    body = {"queries": [QUESTION, query()], "fields": []}
    first, second = client.post("/v1/search", json=body).raise_for_status().json()["results"]
    assert "notes" not in first
    assert second["hits"]
    assert codes(second["notes"]) == [NOTE]
    strict = client.post("/v1/search", json=body | {"strict": True})
    error = strict.json()["error"]
    assert strict.status_code == 400
    assert (error["class"], error["code"], error["field"]) == ("InputError", "unknown", "queries[1].entities[1]")
    assert client.post("/v1/search", json=body | {"queries": [QUESTION], "strict": True}).status_code == 200


def test_a_strict_request_refuses_itself_alone(client):
    def ask(at):
        body = {"queries": [query()], "strict": at % 3 == 0}
        return client.post("/v1/search", json=body).status_code

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(ask, range(24))) == [400 if at % 3 == 0 else 200 for at in range(24)]


def test_what_a_recipe_does_not_read_is_a_note(tmp_path):
    hf.Index.from_texts(["The sea.", "A river."]).save(tmp_path)
    with running(configured(str(tmp_path)), {}) as url, httpx.Client(base_url=url, timeout=60) as client:
        body = {"queries": [{"text": "river", "vector": [1.0], "entities": ["x"]}, "Zyxwvut"]}
        first, second = client.post("/v1/search", json=body).raise_for_status().json()["results"]
        assert codes(first["notes"]) == [("unused", "vector"), ("unused", "entities")]
        assert codes(second["notes"]) == [("unknown", "text")]
        error = client.post("/v1/search", json=body | {"strict": True}).json()["error"]
        assert (error["code"], error["field"]) == ("unused", "queries[0].vector")


def test_a_key_learns_nothing_from_a_note_of_what_it_does_not_see(url, keys, client):
    """None of the passages that the key sees names Lima; no passage names Atlantis."""
    hidden = "Lima"
    assert not any(hidden in text for text in small_index().texts[:3])
    found = {}
    for name in (hidden, "Atlantis"):
        asked = {
            "queries": [query(entities=["Ankara", name]), {"text": f"{name}?", "vector": [1.0] * DIM}],
            "fields": [],
        }
        headers = {"Authorization": f"Bearer {keys['a'][0]}"}
        answer = httpx.post(f"{url}/v1/search", json=asked, headers=headers, timeout=60).json()
        found[name] = json.dumps(answer["results"]).replace(name, "NAME")
        strict = httpx.post(f"{url}/v1/search", json=asked | {"strict": True}, headers=headers, timeout=60).json()
        found[name] += json.dumps(strict["error"]).replace(name, "NAME")
    assert '"notes"' in found[hidden]
    assert found[hidden] == found["Atlantis"]
    whole = client.post("/v1/search", json={"queries": [query(entities=["Ankara", hidden])]}).json()["results"][0]
    assert "notes" not in whole  # it is there, for a key that sees it


def test_other_protocols_have_notes_too(client):
    pa = pytest.importorskip("pyarrow", reason="Arrow streams need pyarrow")
    kind = "application/vnd.apache.arrow.stream"
    sent = {"queries": [QUESTION, query()], "fields": []}
    answer = client.post("/v1/search", json=sent, headers={"accept": kind}).raise_for_status()
    about = json.loads(pa.ipc.open_stream(answer.content).read_all().schema.metadata[b"hopfuse"])
    assert [codes(row) for row in about["notes"]] == [[], [NOTE]]
    dify = client.post("/retrieval", json={"knowledge_id": "cities", "query": "xyzzy"}).raise_for_status().json()
    assert codes(dify["notes"]) == [("unknown", "text")]
    assert "notes" not in client.post("/retrieval", json={"knowledge_id": "cities", "query": QUESTION}).json()
    tensor = {"name": "texts", "datatype": "BYTES", "shape": [2], "data": [QUESTION, "xyzzy"]}
    infer = "/v2/models/cities/infer"
    told = client.post(infer, json={"inputs": [tensor]}).raise_for_status().json()["parameters"]["notes"]
    assert [codes(row) for row in json.loads(told)] == [[], [("unknown", "text")]]
    strict = client.post(infer, json={"inputs": [tensor], "parameters": {"strict": True}})
    assert (strict.status_code, strict.json()["code"], strict.json()["field"]) == (400, "unknown", "queries[1].text")
    vectors = {"name": "vectors", "datatype": "FP32", "shape": [1, DIM], "data": [1.0] * DIM}
    assert "parameters" not in client.post(infer, json={"inputs": [vectors]}).raise_for_status().json()


def test_clients_have_the_notes_and_raise_where_strict(url, keys):
    with Client(url, key=keys["all"][0]) as client:
        found = client.search([QUESTION, QUESTION], entities=[None, ["Ankara", "Atlantis"]])
        assert [[(one.code, one.field) for one in row] for row in found.notes] == [[], [NOTE]]
        assert isinstance(found.notes[1][0], InputError)
        vectors = Letters().encode_queries([QUESTION])
        told = client.search_vectors(vectors, entities=[["Ankara", "Atlantis"]])
        assert [[(one.code, one.field) for one in row] for row in told.notes] == [[NOTE]]
        assert client.search_vectors(vectors, entities=[["Ankara"]]).notes == [[]]
        with refused(InputError, "unknown", "queries[0].entities[1]"):
            client.search([QUESTION], entities=[["Ankara", "Atlantis"]], strict=True)
        with refused(InputError, "unknown", "queries[0].entities[1]"):
            client.search_vectors(vectors, entities=[["Ankara", "Atlantis"]], strict=True)


def test_hits_per_document(tmp_path):
    rows = [{"id": f"{doc}{at}", "text": f"The sea {at} of {doc}.", "document": doc} for at in range(3) for doc in "ab"]
    index = hf.Index.from_texts(rows)
    index.save(tmp_path)
    retriever = hf.Retriever(index)
    with running(configured(str(tmp_path), mcp=True), {}) as url, httpx.Client(base_url=url, timeout=60) as client:
        for most in (1, 2, None):
            body = {"queries": ["the sea"], "k": 4, "per_document": most}
            hits = client.post("/v1/search", json=body).raise_for_status().json()["results"][0]["hits"]
            alone = retriever.search("the sea", k=4, per_document=most)[0]
            assert [(hit["id"], hit["score"]) for hit in hits] == [(hit.id, hit.score) for hit in alone]
            assert len(hits) == {1: 2, 2: 4, None: 4}[most]
        for given, code in (({"per_document": 0}, "range"), ({"per_document": 1, "trace": True}, "conflict")):
            error = client.post("/v1/search", json={"queries": ["the sea"], **given}).json()["error"]
            assert (error["code"], error["field"]) == (code, "per_document")
        with Client(url) as own:
            assert len(own.search(["the sea"], per_document=1)[0]) == 2


@pytest.mark.parametrize("name", ["words", "config", "encoder", "recipe"])
def test_options_are_fields_of_the_recipes_config_alone(client, name):
    error = client.post("/v1/search", json={"queries": [QUESTION], "options": {name: "none"}}).json()["error"]
    assert (error["code"], error["field"]) == ("unknown", f"options.{name}")
