"""Who configures logging: a program that serves keeps its own handlers, and a worker gets the server's."""

from __future__ import annotations

import io
import json
import logging

import httpx
import pytest
from hopfuse.serve import LogConfig, start_logging
from serve.served import configured, running


@pytest.fixture
def root(monkeypatch):
    """The root logger, whose handlers and level are restored."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    level = root.level
    yield root
    root.setLevel(level)


def configure(root):
    """Log to a stream of the program's own alone, and return it."""
    root.handlers.clear()
    stream = io.StringIO()
    root.addHandler(logging.StreamHandler(stream))
    return stream


def test_a_process_without_logging_gets_the_servers(root, capsys):
    root.handlers.clear()  # pytest adds its own
    start_logging(LogConfig())
    logging.getLogger("hopfuse.serve").info("it answers")
    assert capsys.readouterr().err.endswith(" INFO hopfuse.serve it answers\n")


def test_a_program_keeps_the_logging_that_it_configured(root, capsys):
    own = configure(root)
    root.setLevel(logging.INFO)
    start_logging(LogConfig(format="json"))
    logging.getLogger("hopfuse.serve").info("it answers")
    assert own.getvalue() == "it answers\n"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_worker_logs_as_the_server_does_whatever_its_imports_configured(root, capsys, form):
    own = configure(root)
    start_logging(LogConfig(format=form), worker=3)
    logging.getLogger("hopfuse.serve").info("it answers")
    assert own.getvalue() == ""
    (line,) = capsys.readouterr().err.splitlines()
    if form == "json":
        said = json.loads(line)
        assert (said["worker"], said["message"]) == (3, "it answers")
    else:
        assert line.endswith(" INFO worker 3 hopfuse.serve it answers")


# ---- Lines of requests -----------------------------------------------------------------------------------------------


@pytest.fixture
def lines(root, caplog):
    """The records of requests."""
    caplog.set_level("INFO")
    return lambda: [one for one in caplog.records if one.name == "hopfuse.serve.requests"]


def requested(path, log, count=1, where="/health/live"):
    with running(configured(path, log=log)) as url, httpx.Client(base_url=url) as client:
        for _ in range(count):
            client.get(where)


def test_slow_requests_are_logged_as_warnings_and_others_are_not(path, lines):
    requested(path, {"slow_ms": 1e-6})
    (line,) = [one for one in lines() if one.request["route"] == "/health/live"]
    assert (line.levelname, line.request["slow"], line.request["status"]) == ("WARNING", True, 200)


def test_without_a_slow_request_nothing_is_logged(path, lines):
    requested(path, {"slow_ms": 80_000_000.0})
    assert lines() == []
    requested(path, {"slow_ms": 80_000_000.0, "requests": True})
    assert {(one.levelname, one.request.get("slow")) for one in lines()} == {("INFO", None)}


@pytest.mark.parametrize("log", [{"requests": True}, {"slow_ms": 1e-6}])
def test_lines_of_requests_are_limited_and_those_left_out_are_counted(path, lines, log):
    requested(path, {**log, "most": 2}, count=300)
    found = lines()
    shown = [one for one in found if hasattr(one, "request")]
    left_out = [one.args[0] for one in found if not hasattr(one, "request")]
    assert left_out
    assert all(count > 0 for count in left_out)
    readiness = 300 + len([one for one in shown if one.request["route"] == "/health/ready"])
    assert readiness <= len(shown) + sum(left_out) < 300 + 10_000
