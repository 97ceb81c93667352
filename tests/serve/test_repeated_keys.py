"""A key that is twice in an object of a request is refused on every route, wherever it is; other bodies are read."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx
import pytest
from serve.served import configured, running, save

QUESTION = "What is far from Ankara?"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = save(tmp_path_factory.mktemp("keys") / "index")
    with running(configured(folder, indexes={"cities": {"path": folder, "writable": True}})) as url:
        yield url


def post(url: str, path: str, body: str) -> httpx.Response:
    return httpx.post(url + path, content=body.encode(), headers={"content-type": "application/json"}, timeout=60)


SEARCHES = [
    ('{"queries": ["a"], "queries": ["b"]}', "queries"),
    ('{"k": 1, "queries": ["a"], "k" : 2}', "k"),
    ('{"queries": [{"text": "a", "text": "b"}]}', "text"),
    ('{"queries": ["a"], "options": {"dense_k": 5,\n"dense_k"\t:6}}', "dense_k"),
    ('{"queries": ["a"], "options": {"dense_k": 5, "dense\\u005fk": 6}}', "dense_k"),
    ('{"queries": [{"text": "a\\\\"}, {"text": "b", "allow": {"tenant": "x", "tenant": "y"}}]}', "tenant"),
    ('{"queries": [{"text": "\\\\\\"text\\": {"}], "k": 1, "k": 1}', "k"),
    (json.dumps({"queries": ["a"] * 3000})[:-1] + ', "queries": ["b"]}', "queries"),
]


#: Blanks at the end of a body: large ones are read in another way.
PADS = pytest.mark.parametrize("pad", ["", " " * 5000])


@PADS
@pytest.mark.parametrize(("body", "field"), SEARCHES)
def test_a_repeated_key_of_a_search_is_refused(url, body, field, pad):
    answer = post(url, "/v1/search", body + pad)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["field"]) == (
        400,
        "duplicate",
        field,
    )


def test_other_routes_refuse_it_and_change_nothing(url):
    row = '{"id": "new", "text": "t", "metadata": {"tenant": "a", "tenant": "b"}}'
    bodies = [
        ("/v1/passages", f'{{"passages": [{row}]}}', "tenant"),
        ("/v1/passages", '{"passages": [], "passages": [{"id": "new", "text": "t"}]}', "passages"),
        ("/v2/models/cities/infer", '{"inputs": [], "inputs": []}', "inputs"),
    ]
    for path, body, field in bodies:
        answer = post(url, path, body)
        assert answer.status_code == 400
        assert field in answer.text
    assert httpx.get(f"{url}/v1/passages/new").status_code == 404


def test_settings_of_a_stream_have_each_key_once(url):
    arrow = pytest.importorskip("pyarrow", reason="it writes Arrow streams")
    head = {"content-type": "application/vnd.apache.arrow.stream", "accept": "application/json"}
    for settings, status in (('{"k": 1, "k": 2}', 400), ('{"k": 1}', 200)):
        sink, table = arrow.BufferOutputStream(), arrow.table({"text": [QUESTION]})
        made = table.replace_schema_metadata({"hopfuse": settings})
        with arrow.ipc.new_stream(sink, made.schema) as writer:
            writer.write_table(made)
        answer = httpx.post(f"{url}/v1/search", content=bytes(sink.getvalue()), headers=head, timeout=60)
        assert answer.status_code == status
        assert status == 200 or answer.json()["error"]["field"] == "k"


@pytest.mark.parametrize(
    "text",
    [
        '"queries": {"',
        "a, \\",
        '\\"',
        '\\\\"',
        '":',
        "{}}",
        '{"k": 1, "k": 2}',
        '\\" : ',
        "k",
        "x\u2028",
        '"',
        "\\u0022",
    ],
)
@PADS
def test_what_is_in_texts_is_no_key(url, text, pad):
    for body in (
        {"queries": [text, text, {"text": text}], "k": 2},
        {"k": 1, "queries": [{"text": f"{text} {QUESTION}"}]},
    ):
        for options in ({"indent": 1}, {"separators": (",", ":"), "ensure_ascii": False}):
            assert post(url, "/v1/search", json.dumps(body, **options) + pad).status_code == 200


def test_keys_of_many_forms_are_all_told_apart(url):
    """Draw bodies of texts, braces and escapes; json.loads with a hook says which have a key twice."""
    draw, found = random.Random(0), {True: 0, False: 0}
    pieces = ['"', "\\", "{", "}", ":", ",", "a", " ", "é", "[", "]"]
    for _ in range(80):
        keys = ["".join(draw.choices(pieces, k=draw.randint(0, 2))) for _ in range(draw.randint(1, 4))]
        members = ", ".join(f"{json.dumps(key)}: {json.dumps(draw.choice(keys))}" for key in keys)
        twice = len(set(keys)) < len(keys)
        for pad in ("", " " * 5000):
            answer = post(url, "/v1/search", f'{{"queries": ["a"], "options": {{{members}}}}}{pad}')
            error: Any = answer.json()["error"]  # no option has such a name
            assert (error["code"] == "duplicate") == twice, members
        found[twice] += 1
    assert min(found.values()) > 15
