"""The tools by the Model Context Protocol, with the package's own client, over HTTP and over a process's input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import threading

import hopfuse as hf
import httpx
import pytest
from hopfuse.errors import InputError
from hopfuse.serve import new_key, run_stdio
from serve.raw import Raw, post
from serve.served import ENCODERS, Letters, configured, running, save

mcp = pytest.importorskip("mcp", reason="the package of the protocol")
import httpx2  # noqa: E402 - the client that the package is made with
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from refusals import refused as refusal_of  # noqa: E402

QUESTION = "What is far from Ankara, and from Lima?"


@pytest.fixture(scope="module")
def tools_url(path):
    limits = "[limits]\nk = 10\ntext_chars = 200\nbody_bytes = 5000\n"
    with running(configured(path, limits, mcp=True)) as url:
        yield url


def calls(server, *asked, mode="auto", key=None):
    """The tools that are listed, and the results of calls, each a tool's name with its arguments."""

    async def run():
        if key is None:
            return await ask(server)
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as sent:
            return await ask(streamable_http_client(server, http_client=sent))

    async def ask(transport):
        async with mcp.Client(transport, mode=mode) as client:
            listed = await client.list_tools()
            return {tool.name: tool for tool in listed.tools}, [await client.call_tool(*one) for one in asked]

    return asyncio.run(run())


def searched(url, key=None, **body):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/v1/search", json=body, headers=headers, timeout=60).raise_for_status().json()


def refusal(result):
    assert result.is_error
    error = result.structured_content["error"]
    assert result.content[0].text
    return error["code"], error["field"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_answer_as_http_does(tools_url, mode):
    query = {"text": QUESTION, "entities": ["Lima"], "allow": {"tenant": "a"}}
    listed, (found, alone, why) = calls(
        f"{tools_url}/mcp",
        ("search", {**query, "k": 3}),
        ("search", {"text": QUESTION}),
        ("explain_hit", {"text": QUESTION, "id": "p7", "k": 10}),
        mode=mode,
    )
    answer = searched(tools_url, queries=[query], k=3)
    assert found.structured_content == {"hits": answer["results"][0]["hits"], "seq": answer["seq"]}
    assert json.loads(found.content[0].text) == found.structured_content
    assert len(alone.structured_content["hits"]) == 5
    traced = searched(tools_url, queries=[QUESTION], k=10, trace=True)["results"][0]
    rank = [hit["id"] for hit in traced["hits"]].index("p7")
    assert why.structured_content["rank"] == rank + 1
    assert why.structured_content["hit"] == traced["trace"]["hits"][rank]
    assert why.structured_content["seeds"] == traced["trace"]["seeds"]
    assert why.structured_content["hit"]["paths"]
    assert listed.keys() == {"search", "explain_hit"}
    assert listed["search"].annotations.read_only_hint
    assert listed["search"].input_schema["required"] == ["text"]
    assert listed["search"].input_schema["properties"].keys() == {
        "text",
        "k",
        "allow",
        "entities",
        "at",
        "per_document",
        "strict",
        "at_least",
        "index",
    }


def test_refusals_name_the_argument(tools_url):
    cases = [
        (("search", {"text": QUESTION, "k": 11}), ("range", "k")),
        (("search", {"text": " "}), ("empty", "text")),
        (("search", {"text": "x" * 201}), ("limit", "text")),
        (("search", {"text": QUESTION, "allow": {"nope": 1}}), ("unknown", "allow.nope")),
        (("search", {"text": QUESTION, "txt": 1}), ("unknown", "txt")),
        (("search", {}), ("missing", "text")),
        (("search", {"text": QUESTION, "index": "nope"}), ("unknown", "index")),
        (("explain_hit", {"text": QUESTION, "id": "p99"}), ("unknown", "id")),
        (("add_passage", {"id": "x", "text": "x"}), ("read_only", "index")),
        (("nope", {}), ("unknown", "name")),
    ]
    _, results = calls(f"{tools_url}/mcp", *(asked for asked, _ in cases))
    for (_, expected), result in zip(cases, results, strict=True):
        assert refusal(result) == expected
        assert "queries[" not in result.content[0].text
    counted = httpx.get(f"{tools_url}/metrics").text
    assert 'hopfuse_requests_total{route="/mcp search",status="400"}' in counted


@pytest.fixture
def writable(tmp_path):
    key, digest = new_key()
    reader, reads = new_key()
    about = {"indexes": {"cities": {"path": save(tmp_path / "index"), "writable": True}}, "mcp": True}
    keys = {"a": {"sha256": digest, "rights": ["read", "write"]}, "r": {"sha256": reads}}
    with running(configured("", keys=keys, **about)) as url:
        yield f"{url}/mcp", key, reader


def test_a_passage_is_added_and_found(writable):
    url, key, reader = writable
    new = {"id": "new", "text": "Quito is far from Zed.", "entities": ["Zed"]}
    about = {"title": "New", "metadata": {"tenant": "a", "number": 99}}
    listed, results = calls(
        url,
        ("add_passage", {**new, **about}),
        ("search", {"text": "Zed?", "entities": ["Zed"], "k": 1}),
        ("add_passage", new),
        ("add_passage", {**new, "text": "Zed again.", "replace": True}),
        ("search", {"text": "Zed?", "entities": ["Zed"], "k": 1}),
        ("add_passage", {"id": "x", "text": "x", "metadata": {"tenant": 3}}),
        ("add_passage", {"id": "x", "text": "x", "facts": [["a", "b"]]}),
        ("add_passage", {"id": "x", "text": "x", "facts": [["a", "b", "c"]]}),
        ("add_passage", {"text": "x"}),
        key=key,
    )
    added, found, twice, replaced, later, *wrong = results
    assert added.structured_content == {"seq": 1, "searched": True}
    assert found.structured_content["hits"] == [
        {"id": "new", "score": found.structured_content["hits"][0]["score"], "text": new["text"], **about}
    ]
    assert refusal(twice) == ("duplicate", "id")
    assert replaced.structured_content == {"seq": 2, "searched": True}
    assert later.structured_content["hits"][0]["text"] == "Zed again."
    expected = [("type", "metadata.tenant"), ("length", "facts[0]"), ("missing", "facts"), ("missing", "id")]
    for result, about_it in zip(wrong, expected, strict=True):
        assert refusal(result) == about_it
        assert "passages[" not in result.content[0].text
    assert not listed["add_passage"].annotations.read_only_hint
    listed, (refused,) = calls(url, ("add_passage", {**new, "id": "other"}), key=reader)
    assert refusal(refused) == ("forbidden", None)
    assert "add_passage" not in listed


def test_a_server_without_an_encoder_asks_for_no_argument_that_tools_lack(tmp_path):
    hf.Index.build([{"id": "a", "text": "x y"}], vectors=[[1.0, 0.0]], reader="words").save(tmp_path)
    with running(configured("", mcp=True, indexes={"plain": {"path": str(tmp_path), "writable": True}}), {}) as url:
        _, answers = calls(
            f"{url}/mcp",
            ("add_passage", {"id": "b", "text": "A river."}),
            ("search", {"text": "river"}),
            ("explain_hit", {"text": "river", "id": "a"}),
        )
    assert [refusal(one) for one in answers] == [("missing", "text")] * 3


def test_requests_that_are_none(tools_url):
    url = f"{tools_url}/mcp"
    assert httpx.get(url).status_code == 405
    assert httpx.delete(url).status_code == 405
    assert httpx.post(url, content=b"x" * 6000).status_code == 413
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    for body in (b"", b"{", b"[]", b"[" * 3000, b'"\xff"', b'{"jsonrpc": "2.0", "id": 1, "method": "nope"}'):
        answer = httpx.post(url, content=body, headers=headers, timeout=60)
        assert answer.status_code in (200, 400, 404)
        assert "error" in answer.json()
        assert "site-packages" not in answer.text
    for header, value in (("Host", "evil.example"), ("Origin", "https://evil.example")):
        assert httpx.post(url, content=b"{}", headers={**headers, header: value}).status_code == 403


class Held(Letters):
    """An encoder whose calls wait for an event."""

    def __init__(self):
        self.go = threading.Event()
        self.go.set()

    def encode_queries(self, texts):
        self.go.wait()
        return super().encode_queries(texts)


def test_without_keys_each_address_has_its_own_budget(path):
    arguments = {"text": QUESTION, "allow": ["p1"] * 5000}  # counted as a request, and as a search
    call = {"method": "tools/call", "params": {"name": "search", "arguments": arguments}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **call}).encode()
    more = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    limits = {"key_bytes": 3 * len(body), "timeout_ms": 600_000, "max_timeout_ms": 600_000, "encoder_seconds": 600}
    encoder = Held()
    with (
        running(configured(path, mcp=True, limits=limits), {"cities": encoder}) as url,
        contextlib.ExitStack() as stack,
    ):
        encoder.go.clear()
        opened = [stack.enter_context(Raw(url, f"127.0.0.{host}")) for host in range(2, 6)]
        for one in opened:
            one.send(post(body, "/mcp", more=more))
        counted = re.compile(r"^hopfuse_(queue_bytes|refusals_total\S*) (.*)$", re.MULTILINE)
        for _ in range(60_000):  # ends also if a call is refused or not counted twice, which the results show
            found = {name: float(value) for name, value in counted.findall(httpx.get(f"{url}/metrics").text)}
            if found["queue_bytes"] > 6 * len(body) or len(found) > 1:
                break
        encoder.go.set()
        results = [json.loads(one.answer().body)["result"] for one in opened]
        assert [result.get("structuredContent", {}).get("error") for result in results] == [None] * 4
        assert all(len(result["structuredContent"]["hits"]) == 1 for result in results)


def test_without_the_setting_there_is_no_route(url):
    assert httpx.post(f"{url}/mcp", json={}).status_code == 404


def test_a_key_has_its_rights_and_sees_its_passages(path):
    made = {name: new_key() for name in ("a", "writer")}
    about = {"a": {"filter": {"tenant": "a"}}, "writer": {"rights": ["write"]}}
    keys = {name: {"sha256": made[name][1], **one} for name, one in about.items()}
    asked = ("search", {"text": QUESTION, "k": 12})
    with running(configured(path, keys=keys, mcp=True)) as url:
        assert httpx.post(f"{url}/mcp", json={}).status_code == 401
        listed, (found,) = calls(f"{url}/mcp", asked, key=made["a"][0])
        expected = searched(url, key=made["a"][0], queries=[QUESTION], k=12)["results"][0]["hits"]
        assert found.structured_content["hits"] == expected
        assert {hit["metadata"]["tenant"] for hit in expected} == {"a"}
        assert "search" in listed
        listed, (refused,) = calls(f"{url}/mcp", asked, key=made["writer"][0])
        assert refusal(refused) == ("forbidden", None)
        assert "search" not in listed


STDIO = """
import os, sys
from hopfuse.serve import ServeConfig, run_stdio
from serve.served import Letters, configured

class Noisy(Letters):
    @property
    def dim(self):
        print("this is not the protocol's")
        return Letters.dim

run_stdio(configured(sys.argv[1], sys.argv[2]), {"cities": Noisy()}, key=os.environ.get("HOPFUSE_KEY", ""))
"""


def over_stdio(path, *asked, text="", key=""):
    arguments = ["-c", STDIO, path, text]
    environment = {"PYTHONPATH": ":".join(one for one in sys.path if one), "HOPFUSE_KEY": key}
    parameters = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    return calls(parameters, *asked)


@pytest.mark.full
def test_a_process_answers_by_its_input_and_output(path, url):
    _, (found, refused) = over_stdio(path, ("search", {"text": QUESTION, "k": 3}), ("search", {"text": ""}))
    assert found.structured_content["hits"] == searched(url, queries=[QUESTION], k=3)["results"][0]["hits"]
    assert refusal(refused) == ("empty", "text")


@pytest.mark.full
def test_a_process_has_the_rights_of_its_key(path):
    key, digest = new_key()
    text = f'[keys.a]\nsha256 = "{digest}"\nfilter = {{ tenant = "a" }}\n'
    _, (found,) = over_stdio(path, ("search", {"text": QUESTION, "k": 12}), text=text, key=key)
    assert {hit["metadata"]["tenant"] for hit in found.structured_content["hits"]} == {"a"}


def test_a_process_without_a_key_of_the_file_is_refused(path):
    keys = {"a": {"sha256": new_key()[1]}}
    for key in ("", new_key()[0]):
        with refusal_of(InputError, "unauthorized", "HOPFUSE_KEY"):
            run_stdio(configured(path, keys=keys), ENCODERS, key=key)


@pytest.mark.full
def test_without_the_package_the_extra_is_named(path):
    program = """
import sys
sys.modules["mcp"] = None
from hopfuse.serve import make_app, Service
from serve.served import ENCODERS, configured
try:
    make_app(Service(configured(sys.argv[1], mcp=True), ENCODERS))
except ImportError as error:
    print(error)
"""
    found = {"PYTHONPATH": ":".join(one for one in sys.path if one)}
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True, env=found)
    assert "hopfuse mcp needs the package 'mcp'" in done.stdout
    assert "pip install 'hopfuse[mcp]'" in done.stdout
