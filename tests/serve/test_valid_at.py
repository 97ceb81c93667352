"""``at`` of a search over HTTP, by JSON and Arrow, by the clients, by MCP, Dify's API and the inference protocol."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import hopfuse as hf
import httpx
import pytest
from hopfuse.client import Client
from hopfuse.errors import InputError
from hopfuse.serve import new_key
from refusals import refused as refusal_of
from serve.served import Letters, configured, running

TEXTS = {"rome": "Ada lives in Rome.", "oslo": "Ada lives in Oslo.", "bob": "Bob lives in Rome."}
TIMES = ["2010-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]
SPANS: dict[str, dict[str, str]] = {
    "rome": {"valid_from": TIMES[0], "valid_to": TIMES[1]},
    "oslo": {"valid_from": TIMES[1]},
    "bob": {},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: Any) -> Any:
    folder, (key, digest), (whole, all_) = tmp_path_factory.mktemp("valid"), new_key(), new_key()
    hf.Index.build(
        passages=[
            {"id": id, "text": text, "metadata": {"who": text.split()[0], **SPANS[id]}} for id, text in TEXTS.items()
        ],
        vectors=Letters().encode_passages(list(TEXTS.values())),
        entities=["Ada", "Rome"],
        graph=[{"src": 0, "dst": 3}, {"src": 0, "dst": 4}, {"src": 1, "dst": 3}, {"src": 2, "dst": 4}],
        metadata_types=dict.fromkeys(("valid_from", "valid_to"), "timestamp"),
        encoder=Letters(),
        metric="cosine",
    ).save(folder)
    keys = {
        "ada": {"sha256": digest, "rights": ["read"], "filter": {"who": "Ada"}},
        "all": {"sha256": all_, "rights": ["read"]},
    }
    indexes = {"cities": {"path": str(folder)}}
    with running(configured("", indexes=indexes, keys=keys, mcp=True)) as url:
        yield {"url": url, "ada": key, "all": whole}


def search(served: Any, by: str = "all", **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {served[by]}"}
    asked = {"queries": ["Who lives where?"], **body}
    return httpx.post(f"{served['url']}/v1/search", json=asked, headers=headers, timeout=60)


def ids(answer: httpx.Response, query: int = 0) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {hit["id"] for hit in answer.json()["results"][query]["hits"]}


@pytest.mark.parametrize(
    ("at", "valid"),
    [("2009-12-31T23:59:59Z", "bob"), (TIMES[0], "rome bob"), ("2020-01-01T01:00:00+01:00", "oslo bob")],
)
def test_passages_are_searched_that_are_valid_then(served: Any, at: str, valid: str) -> None:
    assert ids(search(served, at=at)) == set(valid.split())
    assert ids(search(served, "ada", at=at)) == set(valid.split()) - {"bob"}
    queries = [{"text": "Who?", "allow": {"who": "Bob"}}, {"text": "Who?", "allow": ["rome", "oslo"]}, "Who?"]
    found = search(served, queries=queries, at=at)
    assert [ids(found, query) for query in range(3)] == [{"bob"}, set(valid.split()) - {"bob"}, set(valid.split())]
    pytest.importorskip("pyarrow", reason="the client sends Arrow if it is installed")
    with Client(served["url"], key=served["all"]) as client:
        assert {hit.id for hit in client.search("Who?", at=datetime.fromisoformat(at))[0]} == set(valid.split())
        vectors = Letters().encode_queries(["Who?"])
        assert {id for id, _ in client.search_vectors(vectors, entities=[[]], at=at)[0]} == set(valid.split())


def test_a_time_of_another_type_is_refused(served: Any) -> None:
    for at, code in ((3, "type"), ("2020", "type"), (True, "type"), ([], "type")):
        error = search(served, at=at).json()["error"]
        assert (error["code"], error["field"].rpartition(".")[2]) == (code, "at")
    with Client(served["url"], key=served["all"]) as client, refusal_of(InputError, "type", "at"):
        client.search("Who?", at=3)


def test_the_tools_take_a_time(served: Any) -> None:
    pytest.importorskip("mcp", reason="the package of the protocol")
    from serve.test_mcp import calls, refusal

    _, (found, why, wrong) = calls(
        f"{served['url']}/mcp",
        ("search", {"text": "Where is Ada?", "at": TIMES[0]}),
        ("explain_hit", {"text": "Where is Ada?", "id": "rome", "at": TIMES[0]}),
        ("search", {"text": "Where is Ada?", "at": 3}),
        key=served["all"],
    )
    assert {hit["id"] for hit in found.structured_content["hits"]} == {"rome", "bob"}
    assert why.structured_content["rank"] in (1, 2)
    assert refusal(wrong) == ("type", "at")
    _, (found, why, wrong) = calls(
        f"{served['url']}/mcp",
        ("search", {"text": "Where is Ada?", "at_least": "latest"}),
        ("explain_hit", {"text": "Where is Ada?", "id": "rome", "at_least": 0}),
        ("search", {"text": "Where is Ada?", "at_least": "newest"}),
        key=served["all"],
    )
    assert (found.structured_content["seq"], why.structured_content["rank"] > 0) == (0, True)
    assert refusal(wrong) == ("choice", "at_least")


def test_dify_and_the_inference_protocol_take_a_time(served: Any) -> None:
    for by, valid in (("all", {"rome", "bob"}), ("ada", {"rome"})):
        headers = {"Authorization": f"Bearer {served[by]}"}
        body = {"knowledge_id": "cities", "query": "Who lives where?", "at": TIMES[0]}
        told = httpx.post(f"{served['url']}/retrieval", json=body, headers=headers, timeout=60).json()
        assert {one["metadata"]["id"] for one in told["records"]} == valid
        route = f"{served['url']}/v2/models/cities/infer"
        texts = {"name": "texts", "shape": [2], "datatype": "BYTES", "data": ["Who lives where?", "Ada?"]}
        body = {"inputs": [texts], "parameters": {"at": TIMES[0]}}
        answer = httpx.post(route, json=body, headers=headers, timeout=60).json()
        found = next(one for one in answer["outputs"] if one["name"] == "ids")["data"]
        assert set(found) - {""} == valid


@pytest.mark.parametrize(
    ("parameters", "code", "field"),
    [
        ({"at": 3}, "type", "parameters.at"),
        ({"at": ["2020"]}, "type", "parameters.at"),
        ({"allow": {"who": "Ada"}}, "unsupported", "parameters.allow"),
        ({"at_least": 3}, "unsupported", "parameters.at_least"),
        ({"priority": 1, "sequence_id": 0}, None, None),
    ],
)
def test_parameters_that_the_inference_protocol_lacks_are_refused(
    served: Any, parameters: dict[str, Any], code: str | None, field: str | None
) -> None:
    """Those of other searches, by which passages would be left out; its own are for the servers that have them."""
    texts = {"name": "texts", "shape": [1], "datatype": "BYTES", "data": ["Ada?"]}
    headers = {"Authorization": f"Bearer {served['all']}"}
    route = f"{served['url']}/v2/models/cities/infer"
    answer = httpx.post(route, json={"inputs": [texts], "parameters": parameters}, headers=headers, timeout=60)
    told = answer.json()
    assert (told.get("code"), told.get("field"), answer.status_code) == (code, field, 200 if code is None else 400)
    if code is None:
        return
    body = {"knowledge_id": "cities", "query": "Ada?", "at": 3}
    assert httpx.post(f"{served['url']}/retrieval", json=body, headers=headers, timeout=60).json()["field"] == "at"
