"""Errors of the command line: a line of text, or JSON with the code and the field that the library gives."""

from __future__ import annotations

import json
import sqlite3

import processes
import pytest
from cli.cli_files import AS_DATA, about, command, run

PROGRAM = {"class", "code", "field", "message", "values", "places"}


def test_the_line_is_json_if_programs_read_it(index):
    done = run("search", index, " ", env=AS_DATA)
    (line,) = done.stderr.splitlines()
    error = json.loads(line)["error"]
    assert set(error) == PROGRAM
    assert (done.returncode, done.stdout, error["class"]) == (2, "", "InputError")
    message = error["message"]
    assert run("search", index, " ").stderr == f"hopfuse: {message}\n"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("search", "index", "Who?", "--k", "0"), about("range", "k")),
        (("search", "index", "Who?", "--k", "many"), about("range", "k")),
        (("search", "index", "Who?", "--recipe", "walk"), about("choice", "recipe")),
        (("search", "index", "Who?", "--recip", "walk"), about("unknown", "recip")),
        (("search", "index", "Who?", "--where"), about("missing", "where")),
        (("search", "index"), about("missing", "question")),
        (("score", "index"), about("missing", "queries")),
        (("score", "run", "folder", "--workers", "0"), about("range", "workers")),
        (("serach", "index"), about("syntax")),
        ((), about("syntax")),
    ],
)
def test_usage_errors_have_the_librarys_codes(refused_here, args, expected):
    assert refused_here(*args) == expected


def test_usage_errors_are_clicks_own_for_people():
    done = processes.run(command("search", "index", "Who?", "--k", "0"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: hopfuse search")


@pytest.mark.parametrize("place", ["sqlite:", "sqlite:none.db"])
def test_a_store_that_cannot_be_opened_is_named_by_its_option(tmp_path, place):
    done = run("build", "--from", place, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith("hopfuse: --from is ")


def test_the_passages_of_a_store_are_named_by_the_option_for_them(tmp_path):
    """PASSAGES is the argument for a file, which a build from a store does not have."""
    sqlite3.connect(tmp_path / "notes.db").close()
    store = ("--from", f"sqlite:{tmp_path / 'notes.db'}", "--out", tmp_path / "out")
    for query in ((), ("--passages", "SELEC 1")):
        done = run("build", *store, *query)
        assert done.returncode == 2
        assert done.stderr.startswith("hopfuse: --passages is ")
    for args in (("--from", "facts.jsonl"), ()):
        done = run("build", *args, "--out", tmp_path / "out")
        assert "--passages" not in done.stderr


@pytest.mark.parametrize("place", ["sqlit:notes.db", "notes.db"])
def test_queries_of_what_is_no_store_name_the_stores(refused_here, tmp_path, place):
    refusal = refused_here("build", "--from", place, "--passages", "SELECT 1", "--out", tmp_path / "out")
    assert (refusal.code, refusal.field, refusal.values["given"]) == ("unknown", "place", place)


def test_an_error_of_the_file_system_names_its_file(files, refused_here, tmp_path):
    place = tmp_path / ("x" * 300)
    refusal = refused_here("build", files / "passages.jsonl", "--out", place)
    assert refusal == about("failed")
    assert (refusal.kind, len(refusal.places)) == ("OSError", 1)
