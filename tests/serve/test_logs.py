"""Who configures logging: a program that serves keeps its own handlers, and a worker gets the server's."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hopfuse.serve import LogConfig, start_logging


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
