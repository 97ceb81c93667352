"""ChatEndpoint against a server that speaks the protocol: answers, corrections, failures, keys."""

from __future__ import annotations

import json
import socket
import sys
import threading
from email.utils import formatdate
from typing import Any

import pytest
from hopfuse.errors import EndpointError, InputError, MissingExtraError
from hopfuse.llm import ChatEndpoint
from llm.chat_server import HANGS, Reply, failure, in_turn
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def endpoint(server: Any, **options: Any) -> ChatEndpoint:
    return ChatEndpoint(server.url, **{"model": "m", "api_key": "sk-secret-1", **options})


def counted(request: dict[str, Any]) -> dict[str, Any]:
    """The number that the prompt begins with."""
    return {"n": int(request["messages"][-1]["content"].split()[0])}


def test_answers_come_in_the_order_of_the_prompts(serve):
    server = serve(counted)
    seen: list[tuple[int, int]] = []
    found = endpoint(server).ask(
        [str(i) for i in range(20)], NUMBER, progress=lambda done, total: seen.append((done, total))
    )
    assert found == [{"n": i} for i in range(20)]
    assert seen == [(done, 20) for done in range(1, 21)]
    assert {request["path"] for request in server.requests} == {"/v1/chat/completions"}
    assert set(server.keys) == {"sk-secret-1"}
    first = server.requests[0]
    assert (first["model"], first["temperature"]) == ("m", 0.0)
    assert first["response_format"]["json_schema"]["schema"] == NUMBER
    assert json.dumps(NUMBER) in first["messages"][-1]["content"]
    assert endpoint(server).ask([], NUMBER) == []


def test_messages_words_and_a_check(serve):
    server = serve(in_turn("words", {"n": 3}))
    assert endpoint(server).text([[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]]) == [
        "words"
    ]
    (plain,) = server.requests
    assert [message["role"] for message in plain["messages"]] == ["system", "user"]
    assert plain["messages"][-1]["content"] == "Hi"
    assert "response_format" not in plain
    assert endpoint(server, temperature=None).ask(["?"], NUMBER, check=lambda found: found["n"] + 1) == [4]
    assert "temperature" not in server.requests[1]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('{"n": "three"}', "the answer.n: 'three' is not of type 'integer'"),
        ('{"n": 3.0}', "3.0 is not of type 'integer'"),
        ('{"n": true}', "True is not of type 'integer'"),
        ("{}", "the answer: 'n' is a required property"),
        ('{"n": 3, "m": 4}', "('m' was unexpected)"),
        ("I cannot say.", "there is no JSON object in the answer"),
        ('{"n": NaN}', "there is no JSON object in the answer"),
        ("", "there is no JSON object in the answer"),
        ('{"n": 4}', "4 is even"),
    ],
)
def test_the_model_is_told_what_was_wrong(serve, wrong, told):
    def odd(found: dict[str, int]) -> int:
        if found["n"] % 2 == 0:
            raise ValueError(f"{found['n']} is even")
        return found["n"]

    server = serve(in_turn(wrong, {"n": 3}))
    assert endpoint(server).ask(["a number"], NUMBER, check=odd) == [3]
    again = server.requests[1]["messages"]
    assert again[0]["content"] == "a number"
    assert told in again[-1]["content"]
    assert [message["content"] for message in again[1:-1]] == ([wrong] if wrong else [])


@pytest.mark.parametrize(
    "text",
    [
        'Sure! Here it is:\n```json\n{"n": 3}\n```\nAnything else?',
        '<think>{"n": } or {"m": 1}?</think>{"n": 3}',
        '{"n": 3} {"n": 4}',
        '{{"n": 3}}',
    ],
)
def test_words_around_the_json_are_passed_over(serve, text):
    server = serve(lambda request: text)
    assert endpoint(server).ask(["?"], NUMBER) == [{"n": 3}]
    assert len(server.requests) == 1


def test_half_a_character_is_not_an_answer(serve):
    words = {"type": "object", "properties": {"w": {"type": "string"}}, "required": ["w"]}
    server = serve(in_turn('{"w": "\\ud83d"}', {"w": "🚀"}))
    assert endpoint(server).ask(["?"], words) == [{"w": "🚀"}]


def test_an_answer_that_was_cut_off_is_asked_for_again(serve):
    server = serve(in_turn(Reply("Once upon", finish="length"), "Once."))
    assert endpoint(server).text(["a tale"]) == ["Once."]
    assert "cut off" in server.prompts()[1]


def test_a_busy_server_is_given_the_time_that_it_asks_for(serve, monkeypatch):
    """In seconds, or until a date, by a clock that stands still here."""
    now, slept = 1_800_000_000.0, list[float]()
    monkeypatch.setattr("time.time", lambda: now)
    monkeypatch.setattr("time.sleep", slept.append)
    for header in ("40", formatdate(now + 40, usegmt=True)):
        server = serve(in_turn(failure(429, "slow down", Retry_After=header), {"n": 1}))
        assert endpoint(server).ask(["?"], NUMBER) == [{"n": 1}]
        assert len(server.requests) == 2
    assert slept == [40.0, 40.0]
    server = serve(lambda request: failure(429, "come back tomorrow", Retry_After="86400"))
    with refused(EndpointError, "connection", requests=1) as caught:
        endpoint(server).ask(["?"], NUMBER)
    assert "Retry-After 86400" in caught.value.values["problem"]
    assert len(server.requests) == 1


def test_failures_of_the_server_are_tried_again(serve):
    broken = (failure(500, "oh"), failure(503, "no"), Reply(body=b"<html>", headers={"Content-Type": "text/html"}))
    server = serve(in_turn(*broken, Reply(body=b'{"choices": []}'), {"n": 1}))
    assert endpoint(server).ask(["?"], NUMBER) == [{"n": 1}]
    assert len(server.requests) == 5


def test_a_question_without_an_answer_is_named(serve):
    server = serve(lambda request: failure(500, "out of memory"))
    with refused(EndpointError, "connection", requests=3) as caught:
        endpoint(server, retries=2).ask(["Who?"], NUMBER)
    assert caught.value.places == ("prompt 1 of 1 ('Who?')",)
    assert "out of memory" in caught.value.values["problem"]
    assert len(server.requests) == 3


def test_a_slow_server_is_given_up(serve, monkeypatch):
    """The first answer is held until the client gives up; the second then has all the time that it needs."""
    never, given_up = threading.Event(), threading.Event()
    wait, receive = socket.socket.settimeout, socket.socket.recv

    def settimeout(self: socket.socket, seconds: float | None) -> None:
        wait(self, HANGS if given_up.is_set() else seconds)

    def recv(self: socket.socket, *sizes: int) -> bytes:
        try:
            return receive(self, *sizes)
        except TimeoutError:
            given_up.set()
            raise

    with monkeypatch.context() as patch:
        patch.setattr("socket.socket.settimeout", settimeout)
        patch.setattr("socket.socket.recv", recv)
        server = serve(lambda request: {"n": 1} if request["tries_before"] else Reply('{"n": 0}', held=never))
        assert endpoint(server, timeout=0.1).ask(["?"], NUMBER) == [{"n": 1}]
    assert given_up.is_set()
    server = serve(lambda request: Reply("", held=never))
    with refused(EndpointError, "connection", requests=2) as caught:
        endpoint(server, timeout=0.1, retries=1).ask(["?"], NUMBER)
    assert "0.1 s" in caught.value.values["problem"]
    never.set()


def test_a_server_that_is_not_there(nobody):
    with refused(EndpointError, "connection", requests=2):
        ChatEndpoint(nobody, model="m", retries=1).text(["?"])


def test_a_wrong_key_fails_at_once_and_is_not_repeated(serve):
    server = serve(lambda request: failure(401, "Incorrect API key provided: sk-secret-1"))
    with refused(EndpointError, "reply", "api_key", status=401) as caught:
        endpoint(server, concurrency=1).ask([str(i) for i in range(9)], NUMBER)
    assert len(server.requests) == 1
    assert "sk-secret-1" not in caught.value.sentence()
    assert caught.value.__context__ is None
    assert "sk-secret-1" not in repr(endpoint(server))


def test_an_unknown_model_fails_at_once(serve):
    server = serve(lambda request: failure(404, "model m does not exist"))
    with refused(EndpointError, "reply", status=404):
        endpoint(server).ask(["?"], NUMBER)
    assert len(server.requests) == 1


def test_formats_that_a_server_does_not_take_are_left_out(serve):
    def picky(request: dict[str, Any]) -> Any:
        taken = request.get("response_format", {"type": "none"})["type"] in ("json_object", "none")
        return counted(request) if taken else failure(400, "response_format.type json_schema is not supported")

    server = serve(picky)
    asked = endpoint(server, concurrency=1)
    assert asked.ask(["1", "2", "3"], NUMBER) == [{"n": 1}, {"n": 2}, {"n": 3}]
    formats = [request["response_format"]["type"] for request in server.requests]
    assert formats == ["json_schema", "json_object", "json_object", "json_object"]

    refused = failure(422, "Response formats are not permitted")
    server = serve(lambda request: refused if "response_format" in request else counted(request))
    assert endpoint(server).ask(["7"], NUMBER) == [{"n": 7}]


def test_a_refused_prompt_changes_no_format(serve):
    """Of the endpoint, or of another schema: what one prompt did wrong weakens nobody's answers."""

    def short(request: dict[str, Any]) -> Any:
        return (
            counted(request) if len(request["messages"]) == 1 else failure(400, f"too long: {request['messages'][-1]}")
        )

    server = serve(short)
    asked = endpoint(server)
    long = [{"role": "system", "content": "s"}, {"role": "user", "content": "7"}]
    with refused(EndpointError, "reply", status=400) as caught:
        asked.ask([long], NUMBER)
    assert "too long" in caught.value.values["said"]
    assert len(server.requests) == 1
    assert asked.ask(["7"], NUMBER) == [{"n": 7}]
    assert server.requests[-1]["response_format"]["type"] == "json_schema"

    def strict(request: dict[str, Any]) -> Any:
        given = request["response_format"].get("json_schema", {"schema": {"required": []}})["schema"]
        return counted(request) if "required" in given else failure(400, "Invalid schema for response_format 'answer'")

    server = serve(strict)
    asked = endpoint(server)
    asked.ask(["1"], {"type": "object"})
    asked.ask(["2"], NUMBER)
    assert [one["response_format"]["type"] for one in server.requests] == ["json_schema", "json_object", "json_schema"]


def test_the_environment_has_the_key_and_the_address(serve, monkeypatch):
    server = serve(counted)
    with refused(InputError, "missing", "api_key"):
        ChatEndpoint(model="m")
    ChatEndpoint(server.url, model="m").ask(["1"], NUMBER)
    monkeypatch.setenv("OPENAI_API_KEY", " sk-of-the-environment\n")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ChatEndpoint(model="m").ask(["1"], NUMBER)
    assert server.keys == ["none", "sk-of-the-environment"]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"model": " "}, ("empty", "model")),
        ({"concurrency": 0}, ("range", "concurrency")),
        ({"retries": -1}, ("range", "retries")),
        ({"timeout": 0}, ("range", "timeout")),
        ({"temperature": 3}, ("range", "temperature")),
        ({"base_url": "localhost:8000"}, ("syntax", "base_url")),
        ({"base_url": "http://h:port"}, ("syntax", "base_url")),
        ({"base_url": "http://me:word@h/v1"}, ("unsupported", "base_url")),
        ({"base_url": "http://me:word@h:port"}, ("unsupported", "base_url")),
        ({"base_url": "me:word@localhost:8000/v1"}, ("unsupported", "base_url")),
        ({"base_url": "https://me:pa/word@h/v1"}, ("unsupported", "base_url")),
        ({"base_url": "http:/me:word@h/v1"}, ("unsupported", "base_url")),
        ({"base_url": "http://h/v1?api_key=word"}, ("unsupported", "base_url")),
        ({"base_url": "http://h/v1#word"}, ("unsupported", "base_url")),
        ({"base_url": "me:word"}, ("syntax", "base_url")),
        ({"base_url": "http://h/word word"}, ("syntax", "base_url")),
        ({"base_url": b"http://word"}, ("syntax", "base_url")),
        ({"api_key": "sk\u2013typographic"}, ("syntax", "api_key")),
    ],
)
def test_invalid_input_is_refused(options, refusal):
    with refused(InputError, *refusal) as caught:
        ChatEndpoint(**{"base_url": "http://h/v1", "model": "m", **options})
    assert "base_url" not in options or "word" not in caught.value.sentence().replace("password", "")
    assert "typographic" not in caught.value.sentence()


@pytest.mark.parametrize(
    ("prompts", "schema", "refusal"),
    [
        ("one", NUMBER, ("type", "prompts")),
        ([3], NUMBER, ("type", "prompts[0]")),
        ([[]], NUMBER, ("type", "prompts[0]")),
        (["a", [{"role": "robot", "content": "b"}]], NUMBER, ("type", "prompts[1]")),
        (["\ud83d"], NUMBER, ("type", "prompts[0]")),
        (["a"], {"type": "array"}, ("choice", "schema.type")),
        (["a"], {"type": "object", "oneOf": []}, ("syntax", "schema.oneOf")),
        (
            ["a"],
            {"type": "object", "properties": {"a": {"type": "text"}}},
            ("syntax", "schema.properties.a.type"),
        ),
    ],
)
def test_prompts_and_schemas_that_are_none(serve, prompts, schema, refusal):
    server = serve(counted)
    with refused(InputError, *refusal):
        endpoint(server).ask(prompts, schema)
    assert server.requests == []


def test_the_extra_is_named_where_the_client_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with refused(MissingExtraError, "missing_extra", extra="llm"):
        ChatEndpoint("http://h/v1", model="m")


def test_the_extra_is_named_where_schemas_cannot_be_checked(serve, monkeypatch):
    server = serve(lambda request: "words")
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert endpoint(server).text(["?"]) == ["words"]
    with refused(MissingExtraError, "missing_extra", package="jsonschema", extra="llm"):
        endpoint(server).ask(["?"], NUMBER)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(serve, status):
    """The prompts, which may be passages that only this endpoint may read, reach no other host."""
    other = serve(lambda request: {"n": 1})
    server = serve(
        lambda request: Reply(status=status, headers={"Location": other.url + "/chat/completions"}, body=b"")
    )
    with refused(EndpointError, "reply", status=status, target=f"{other.url}/chat/completions"):
        endpoint(server).ask(["private"], NUMBER)
    assert (len(server.requests), other.requests) == (1, [])
