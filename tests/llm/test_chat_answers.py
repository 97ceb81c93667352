"""Which texts of a language model count as answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hopfuse.errors import EndpointError
from llm.chat_server import Reply, in_turn
from llm.test_chat_endpoint import NUMBER, endpoint
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")

ANY: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize("depth", [101, 500, 3000, 50_000])
def test_deeply_nested_json_is_not_an_answer(serve, depth):
    server = serve(in_turn('{"a":' * depth + "1" + "}" * depth, {"n": 3}))
    assert endpoint(server).ask(["?"], ANY) == [{"n": 3}]
    assert "nested deeper than 100" in server.prompts()[1]


def test_deeply_nested_json_in_a_text_field_is_requested_again(serve):
    wanted = {"type": "object", "properties": {"n": {"type": "string"}}}
    server = serve(in_turn('{"n": ' + "[" * 900 + "]" * 900 + "}", {"n": "3"}))
    assert endpoint(server).ask(["?"], wanted) == [{"n": "3"}]


def test_a_deeply_nested_completion_is_requested_again(serve):
    server = serve(in_turn(Reply(body=b"[" * 99_999), {"n": 3}))
    assert endpoint(server).ask(["?"], NUMBER) == [{"n": 3}]


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_numbers_out_of_range_are_asked_for_again(serve, number):
    real = {"type": "object", "properties": {"n": {"type": "number"}}}
    for schema in (real, ANY):
        server = serve(in_turn(f'{{"n": {number}}}', '{"n": 1e308}'))
        assert endpoint(server).ask(["?"], schema) == [{"n": 1e308}]
        assert "finite" in server.prompts()[1]


def test_json_in_a_think_block_is_not_the_answer(serve):
    server = serve(lambda request: ' <think>e.g. {"n": 0},\nno.</think> {"n": 42}')
    assert endpoint(server).ask(["?"], NUMBER) == [{"n": 42}]
    server = serve(in_turn('<think>{"n": 0}</think>', '{"n": 1}'))
    assert endpoint(server).ask(["?"], NUMBER) == [{"n": 1}]
    words = {"type": "object", "properties": {"w": {"type": "string"}}}
    server = serve(lambda request: '{"w": "<think>a</think>"}')
    assert endpoint(server).ask(["?"], words) == [{"w": "<think>a</think>"}]


@pytest.mark.parametrize(
    ("finish", "told"),
    [
        ("length", "cut off at the model's limit"),
        ("content_filter", "content filter"),
        ("tool_calls", "it ended with 'tool_calls'"),
        ("function_call", "it ended with 'function_call'"),
    ],
)
def test_only_a_complete_text_is_an_answer(serve, tmp_path, finish, told):
    server = serve(in_turn(Reply('{"n": 1}', finish=finish), {"n": 2}))
    assert endpoint(server, cache=tmp_path).ask(["?"], NUMBER) == [{"n": 2}]
    assert told in server.prompts()[1]
    (file,) = tmp_path.rglob("*.json")
    assert json.loads(file.read_bytes()) == {"answer": {"n": 2}}
    server = serve(lambda request: Reply("words", finish=None))
    assert endpoint(server).text(["?"]) == ["words"]


def test_a_models_refusal_is_in_the_error(serve):
    server = serve(lambda request: Reply(None, refusal="I will not, sk-secret-1."))
    with refused(EndpointError, "reply", requests=2) as caught:
        endpoint(server, retries=1).ask(["?"], NUMBER)
    assert "I will not, [key]" in caught.value.values["problem"]
    assert len(server.requests) == 2


def test_a_lone_surrogate_is_refused(serve):
    body = json.dumps({"choices": [{"message": {"content": "a \ud800"}, "finish_reason": "stop"}]}).encode()
    server = serve(in_turn(Reply(body=body), "whole"))
    assert endpoint(server).text(["?"]) == ["whole"]
    assert "lone surrogate" in server.prompts()[1]
