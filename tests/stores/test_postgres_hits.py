"""Hits written into a table: by Python, by a score that is finished, resumed or killed, and from its file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from cli.cli_files import about, command, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse import Index
from hopfuse.errors import InputError, StoreError
from hopfuse.offline import HitsTable
from hopfuse.recipes import HybridRRF
from hopfuse.stores.postgres import check_hits_table, write_hits
from refusals import refused

ROWS = [{"id": at, "text": text} for at, text in enumerate(("Ada wrote notes.", "The sea.", "Engines in London."), 7)]
QUERIES = ["Who wrote notes?", "Which engines?", "Where is the sea?", "zzz"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """An index whose ids are integers, and a file of queries."""
    index, queries = tmp_path / "index", tmp_path / "queries.jsonl"
    Index.build(ROWS, reader="words").save(index)
    queries.write_text("".join(json.dumps({"id": f"q{at}", "text": text}) + "\n" for at, text in enumerate(QUERIES)))
    return index, queries


def rows_of(connection: Any, table: str = "hits") -> list[Any]:
    found = connection.execute(f"SELECT question, rank, passage, score FROM {table} ORDER BY question, rank").fetchall()
    return list(found)


def rows_in(path: Path) -> list[Any]:
    """The rows of a table with the hits of a file."""
    rows = map(json.loads, path.read_text().splitlines())
    return sorted((row["id"], rank, hit["id"], hit["score"]) for row in rows for rank, hit in enumerate(row["hits"], 1))


def types_of(connection: Any, table: str) -> list[str]:
    found = connection.execute(
        "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY "
        "attnum",
        (table,),
    )
    return [kind for (kind,) in found.fetchall()]


def test_a_table_of_hits_is_created(database):
    url, connection = database
    vectors = [[1.0, 0.0], [0.0, 1.0]]
    numbers = Index.build([{"id": 1, "text": "one"}, {"id": 2, "text": "two"}], vectors=vectors)
    found = HybridRRF(numbers).search(vectors=vectors, k=2)
    with refused(InputError, "failed", "table"):
        write_hits(url, "hits", [5, 6], found)
    assert write_hits(url, "hits", [5, 6], found, create=True) == 4
    assert types_of(connection, "hits") == ["bigint", "integer", "bigint", "double precision"]
    assert rows_of(connection) == [
        (question, rank, hit.id, hit.score)
        for question, hits in zip((5, 6), found, strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    with refused(InputError, "failed", "table"):  # a row is there already
        write_hits(url, "hits", [5], [found[0]], create=True)
    assert write_hits(url, "hits", [5], [[]], create=True, replace=True) == 0
    assert [row[0] for row in rows_of(connection)] == [6, 6]
    connection.execute("CREATE SCHEMA s")
    assert write_hits(url, "s.Some hits", ["a", "b"], found, create=True) == 4
    assert types_of(connection, 's."Some hits"') == ["text", "integer", "bigint", "double precision"]
    assert write_hits(url, "none", [], [], create=True) == 0
    assert types_of(connection, "none") == ["text", "integer", "text", "double precision"]


def test_a_table_is_checked_before_hits_are_made(database):
    url, connection = database
    check_hits_table(url, "hits")
    assert connection.execute("SELECT to_regclass('hits')").fetchone() == (None,)
    connection.execute("CREATE TABLE other (question text, rank int)")
    with refused(InputError, "missing", "table", column="passage"):
        check_hits_table(url, "other")
    with refused(InputError, "failed", "table"):
        check_hits_table(url, "nowhere.hits")
    with refused(StoreError, "connection"):
        check_hits_table("postgresql:///x?host=/nowhere", "hits")


def test_a_score_goes_to_a_table(database, files, tmp_path, monkeypatch):
    url, connection = database
    index, queries = files
    monkeypatch.chdir(tmp_path)
    given = ("score", index, "--queries", queries, "--part-rows", "1")
    hopfuse(*given, "--out", tmp_path / "hits.jsonl")
    expected = rows_in(tmp_path / "hits.jsonl")
    said = hopfuse(*given, "--out", url).stderr
    assert "Scored 4 queries into table hits of PostgreSQL" in " ".join(said.split())
    assert rows_of(connection) == expected
    assert types_of(connection, "hits") == ["text", "integer", "bigint", "double precision"]
    assert not (tmp_path / "hits.partial").exists()
    hopfuse(*given, "--out", url)  # again: the rows are replaced
    assert rows_of(connection) == expected
    hopfuse("score", "write", tmp_path / "hits.jsonl", "--out", url, "--table", "finished")
    hopfuse("score", "write", tmp_path / "hits.jsonl", "--out", url, "--table", "finished")
    assert rows_of(connection, "finished") == expected
    hopfuse(*given, "--out", tmp_path / "hits.parquet")
    hopfuse("score", "write", tmp_path / "hits.parquet", "--out", url, "--table", "of_parquet")
    assert rows_of(connection, "of_parquet") == expected
    hopfuse("score", "plan", index, "--queries", queries, "--out", tmp_path / "run")
    hopfuse("score", "run", tmp_path / "run")
    for _ in range(2):
        hopfuse("score", "merge", tmp_path / "run", "--out", url, "--table", "merged")
        assert rows_of(connection, "merged") == expected


def test_options_of_tables_are_checked_first(database, files, tmp_path, monkeypatch):
    url, connection = database
    index, queries = files
    monkeypatch.chdir(tmp_path)
    given = ("score", index, "--queries", queries)
    connection.execute("CREATE TABLE other (question text, rank int)")
    (tmp_path / "bad.jsonl").write_text('{"id": "q", "hits": [{"id": "p"}]}\n')
    for options, error in (
        ((*given, "--out", url, "--table", "other"), about("missing", "table", column="passage")),
        ((*given, "--out", url, "--overwrite"), about("conflict", "overwrite")),
        ((*given, "--out", url, "--with", "title"), about("conflict", "with")),
        ((*given, "--out", tmp_path / "x.jsonl", "--table", "hits"), about("unused", "table")),
        (("score", "write", tmp_path / "bad.jsonl", "--out", url), about("type", "hits")),
        (("score", "write", tmp_path / "bad.jsonl", "--out", tmp_path / "x"), about("choice", "out")),
    ):
        assert refused_command(*options) == error
    assert connection.execute("SELECT to_regclass('hits')").fetchone() == (None,)
    assert not list(tmp_path.glob("*.partial"))


def wait_until(check: Any) -> None:
    end = time.monotonic() + 600
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_score_writes_nothing_and_the_next_one_goes_on(database, files, tmp_path):
    url, connection = database
    index, queries = files
    given = ("score", index, "--queries", queries, "--part-rows", "1")
    hopfuse(*given, "--out", tmp_path / "hits.jsonl")
    write_hits(url, "hits", ["q0"], [[]], create=True)
    connection.execute("INSERT INTO hits VALUES ('q0', 1, '7', 0.5), ('older', 1, '7', 0.5)")
    with connection.transaction():
        connection.execute("LOCK TABLE hits IN ACCESS EXCLUSIVE MODE")  # the score waits for it when all parts are made
        process = subprocess.Popen(command(*given, "--out", url), cwd=tmp_path, stderr=subprocess.DEVNULL)
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'hits'::regclass"
        wait_until(lambda: connection.execute(waits).fetchone() == (1,) or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [row[0] for row in rows_of(connection)] == ["older", "q0"]
    done = subprocess.run(command(*given, "--out", url), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Resuming after" in done.stderr or "kept from before" in done.stderr
    expected = [
        (question, rank, str(passage), score) for question, rank, passage, score in rows_in(tmp_path / "hits.jsonl")
    ]
    assert rows_of(connection) == sorted([*expected, ("older", 1, "7", 0.5)])
    assert not (tmp_path / "hits.partial").exists()


def test_no_message_has_the_password():
    pytest.importorskip("psycopg", reason="the driver of PostgreSQL (extra postgres)")
    table = HitsTable("postgresql://ada:secret@example.org/news", "s.hits")
    assert str(table) == "table s.hits of PostgreSQL at example.org, database news"
    assert table.folder == Path("s.hits.partial")
    assert os.fspath(table.folder) == "s.hits.partial"
