"""What a failure says, how long it waits, and what it does not carry along."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from hopfuse.errors import EndpointError, InputError
from hopfuse.llm import ChatEndpoint
from llm.chat_server import HANGS, Reply, completion, failure, in_turn
from llm.test_chat_endpoint import NUMBER, counted, endpoint
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")

ADVICE = "with more retries"


def chain(error: BaseException | None) -> list[BaseException]:
    """The error, and all that it was raised from or while."""
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


@pytest.mark.parametrize("reply", [failure(401, "no"), failure(500, "oh"), failure(400, "no"), Reply(body=b"[]")])
def test_no_error_has_the_request_whose_header_holds_the_key(serve, reply):
    with pytest.raises(EndpointError) as caught:
        endpoint(serve(lambda request: reply), retries=0).ask(["?"], NUMBER)
    assert [type(error) for error in chain(caught.value)] == [EndpointError]


def test_a_connection_that_fails_has_none_either(nobody):
    with refused(EndpointError, "connection", requests=1) as caught:
        ChatEndpoint(nobody, model="m", retries=0, api_key="sk-secret-1").text(["?"])
    assert [type(error) for error in chain(caught.value)] == [EndpointError]


@pytest.mark.parametrize("status", [500, 501, 502, 505, 511, 529])
def test_every_failure_of_a_server_is_tried_again(serve, status):
    server = serve(in_turn(failure(status, "oh"), {"n": 1}))
    assert endpoint(server).ask(["?"], NUMBER) == [{"n": 1}]
    assert [one["response_format"]["type"] for one in server.requests] == ["json_schema"] * 2


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (failure(503, "busy"), "connection"),
        (failure(429, "busy"), "connection"),
        (Reply("no JSON"), "reply"),
        (Reply(body=b"<html>"), "reply"),
    ],
)
def test_a_server_that_is_busy_and_one_that_answers_badly_are_told_apart(serve, reply, code):
    with refused(EndpointError, code, requests=2):
        endpoint(serve(lambda request: reply), retries=1).ask(["?"], NUMBER)


def test_names_of_prompts_are_in_their_errors(serve):
    server = serve(lambda request: counted(request) if counted(request)["n"] < 2 else failure(404, "no"))
    asked = endpoint(server, concurrency=1)
    with refused(EndpointError, "reply", status=404) as caught:
        asked.ask(["1", "2"], NUMBER, names=["the first", "the second"])
    assert caught.value.places == ("prompt 2 of 2 (the second)",)
    wrong: list[tuple[Any, str, str]] = [
        (["one"], "length", "names"),
        ("ab", "type", "names"),
        ([1, 2], "type", "names[0]"),
        (5, "type", "names"),
    ]
    for names, code, field in wrong:
        with refused(InputError, code, field):
            asked.ask(["1", "2"], NUMBER, names=names)
    assert len(server.requests) == 2


def test_timeout_is_silence_and_not_length(serve, monkeypatch):
    """A server that sends a byte now and then is waited on, as the docstring says: for each the whole time anew."""
    waits, asked_for, wait = list[float | None](), threading.Semaphore(0), socket.socket.settimeout

    def settimeout(self: socket.socket, seconds: float | None) -> None:
        waits.append(seconds)
        wait(self, seconds)
        asked_for.release()

    monkeypatch.setattr("socket.socket.settimeout", settimeout)
    reply = Reply('{"n": 1}', drip=asked_for)
    server = serve(lambda request: reply)
    assert endpoint(server, timeout=HANGS, retries=0).ask(["?"], NUMBER) == [{"n": 1}]
    assert set(waits) == {HANGS}
    assert len(waits) >= len(completion(reply))
    assert "without a byte" in str(ChatEndpoint.__doc__)


@pytest.mark.parametrize(
    ("key", "said", "shown"),
    [
        ("x", "maximum exceeded; the key is x.", "maximum exceeded; the key is [key]."),
        ("k", "key k: like 'k'", "key [key]: like '[key]'"),
        ("sk-0123456789", "no key sk-0123456789abc", "no key [key]abc"),
        ("(", "f(x)", "f(x)"),
    ],
)
def test_a_key_is_hidden_and_words_that_contain_a_short_one_are_not_cut(serve, key, said, shown):
    with refused(EndpointError, "reply", status=404, said=shown):
        endpoint(serve(lambda request: failure(404, said)), api_key=key).ask(["?"], NUMBER)
