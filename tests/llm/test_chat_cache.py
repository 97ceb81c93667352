"""What is asked once, how much at a time, and what an interruption leaves."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from hopfuse.errors import EndpointError, InputError
from hopfuse.llm import ChatEndpoint
from llm.chat_server import HANGS, failure, in_turn
from llm.test_chat_endpoint import NUMBER, counted, endpoint
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")


def test_an_answered_question_is_not_asked_again(serve, tmp_path):
    server = serve(counted)
    for _ in range(2):
        assert endpoint(server, cache=tmp_path / "a" / "b").ask(["1", "2", "1"], NUMBER) == [
            {"n": 1},
            {"n": 2},
            {"n": 1},
        ]
    assert len(server.requests) == 2
    others: list[dict[str, Any]] = [{"model": "other"}, {"temperature": 0.5}]
    for options in others:
        endpoint(server, cache=tmp_path / "a" / "b", **options).ask(["1"], NUMBER)
    endpoint(server, cache=tmp_path / "a" / "b").ask(["1"], {**NUMBER, "description": "another"})
    assert len(server.requests) == 5


def test_words_are_kept_too(serve, tmp_path):
    server = serve(in_turn("", "words"))
    assert [endpoint(server, cache=tmp_path).text(["?"]) for _ in range(2)] == [["words"], ["words"]]
    assert len(server.requests) == 2


def test_an_interrupted_run_goes_on(serve, tmp_path):
    """The sixth request is refused, so that run ends; the next asks what is missing alone."""
    broken = True

    def fragile(request: dict[str, Any]) -> Any:
        return failure(401, "expired") if broken and len(server.requests) > 5 else counted(request)

    server = serve(fragile)
    prompts = [str(i) for i in range(12)]
    with refused(EndpointError, "reply", "api_key", status=401) as caught:
        endpoint(server, cache=tmp_path, concurrency=1).ask(prompts, NUMBER)
    assert caught.value.places == ("prompt 6 of 12 ('5')",)
    assert len(server.requests) == 6
    assert len(list(tmp_path.rglob("*.json"))) == 5
    broken = False
    assert endpoint(server, cache=tmp_path).ask(prompts, NUMBER) == [{"n": i} for i in range(12)]
    assert len(server.requests) == 6 + 7
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"] * 12


def test_a_caller_may_interrupt(serve, tmp_path):
    """A progress callback that raises, as Ctrl-C does, ends the run; what waits is not waited for, and not sent."""
    interrupted, others = threading.Event(), set(threading.enumerate())

    def fails_from_four(request: dict[str, Any]) -> Any:
        if counted(request)["n"] < 4:
            return counted(request)
        interrupted.wait(HANGS)
        return failure(500, "no")

    def interrupt(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    server = serve(fails_from_four)
    slow = endpoint(server, cache=tmp_path, concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        slow.ask([str(i) for i in range(50)], NUMBER, progress=interrupt)
    interrupted.set()
    for thread in set(threading.enumerate()) - others:
        if thread.name.startswith("ThreadPoolExecutor"):  # those that ask: after their end nothing is sent
            thread.join(HANGS)
            assert not thread.is_alive()
    assert len(server.requests) <= 6, "four answers and the two on their way: no retry, and nothing that waited"
    assert len(list(tmp_path.rglob("*.json"))) == 4


def test_a_torn_file_is_asked_again(serve, tmp_path):
    server = serve(counted)
    asked = endpoint(server, cache=tmp_path)
    asked.ask(["1"], NUMBER)
    (file,) = tmp_path.rglob("*.json")
    whole = file.read_bytes()
    for torn in (whole[:-3], b"", b"\xff", b"3", b'{"answer": {"n": "x"}}', b'{"answer": null}', b"[" * 99999):
        file.write_bytes(torn)
        assert asked.ask(["1"], NUMBER) == [{"n": 1}]
        assert file.read_bytes() == whole
    assert len(server.requests) == 8


def test_the_cache_has_no_secret_and_no_question(serve, tmp_path):
    server = serve(counted)
    endpoint(server, cache=tmp_path).ask(["1 private"], NUMBER)
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert json.loads(file.read_text(encoding="utf-8")) == {"answer": {"n": 1}}
    assert server.keys == ["sk-secret-1"]


def test_no_more_requests_at_once_than_allowed(serve):
    together = threading.Barrier(3, timeout=HANGS)

    def all_at_once(request: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        time.sleep(0.02)  # for a fourth that should not come
        return counted(request)

    server = serve(all_at_once)
    endpoint(server, concurrency=3).ask([str(i) for i in range(12)], NUMBER)
    assert server.most_at_once == 3


def test_a_cache_must_be_a_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with refused(InputError, "failed", "cache"):
        ChatEndpoint("http://h/v1", model="m", cache=file)
