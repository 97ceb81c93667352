"""Indexes of PostgreSQL tables: the bytes of an index of files; what is wrong is named; the server is a real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse import Index
from hopfuse.errors import HopfuseError, InputError, StoreError
from hopfuse.stores.postgres import TransientError
from refusals import refused
from stores.postgres_tables import QUERIES, TABLES, make_tables
from stores.store_files import saved_bytes

ROWS = 6


def source(url: str, **queries: Any) -> Any:
    from hopfuse.stores.postgres import PostgresSource

    return PostgresSource(url, **{**QUERIES, **queries})


def files(folder: Path) -> Index:
    """The index of the same rows in files, as hopfuse build reads them."""
    rows = [
        {
            "id": id,
            "title": None if id % 3 == 0 else f"Title {id}",
            "text": f"Text of {id}  naïve 🗼",
            "metadata": {"year": 1800 + id, "tags": ["x", str(id)]},
        }
        for id in range(ROWS)
    ]
    passages, edges = folder / "passages.jsonl", folder / "edges.jsonl"
    passages.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    listed = [{"src": id, "dst": ROWS, "type": "context", "weight": 1} for id in range(ROWS)]
    listed[2:2] = [{"src": 1, "dst": ROWS + 1, "type": "context", "weight": 2.5}]
    listed[4:4] = [{"src": 2, "dst": ROWS + 2, "type": "context", "weight": 0.5}]
    listed += [{"src": ROWS, "dst": ROWS + 1, "type": "knew", "passage": passage, "weight": 1} for passage in (1, 2)]
    listed += [{"src": ROWS + 1, "dst": ROWS + 2, "type": "built", "passage": 2, "weight": 1}]
    edges.write_text("".join(json.dumps(edge) + "\n" for edge in listed), encoding="utf-8")
    vectors = np.array([[id + 1.0, 0.5 * id, -1.0, 0.1] for id in range(ROWS)], np.float32)
    np.save(folder / "vectors.npy", vectors)
    return Index.build(
        passages=passages,
        vectors=folder / "vectors.npy",
        graph=edges,
        entities=["Ada", "Babbage", "Engine"],
        aliases={"Ada": ["Countess", "A. L."]},
        facts=[
            {"head": "Ada", "relation": "knew", "tail": "Babbage", "passage": 1},
            {"head": "Ada", "relation": "knew", "tail": "Babbage", "passage": 2},
            {"head": "Babbage", "relation": "built", "tail": "Engine", "passage": 2},
        ],
    )


def test_an_index_of_tables_has_the_bytes_of_one_of_files(database, tmp_path):
    url, connection = database
    make_tables(connection, ROWS)
    made = Index.build(source(url), scratch=tmp_path)
    wanted = saved_bytes(files(tmp_path), tmp_path / "wanted")
    assert saved_bytes(made, tmp_path / "made") == wanted
    queries = [f"--{table}={text}" for table in ("passages", "entities", "facts") for text in [QUERIES[table]]]
    queries += [f"--edges={text}" for text in QUERIES["edges"]]
    hopfuse("build", "--from", url, *queries, "--out", tmp_path / "program")
    assert (tmp_path / "program" / "generation-000000000001.hopfuse").read_bytes() == wanted


def test_half_vectors_arrays_uuids_and_json_are_read(database):
    url, connection = database
    connection.execute(
        "CREATE TABLE t (id uuid PRIMARY KEY, body varchar(20), h halfvec(3), r real[], j jsonb);"
        "INSERT INTO t VALUES ('00000000-0000-0000-0000-00000000000a', 'one', '[1,2,0.333]', '{1,2,3}', '{\"a\": 1}'),"
        "('00000000-0000-0000-0000-00000000000b', 'two', '[-1,0,65504]', '{4,5,6}', NULL)"
    )
    half = Index.build(
        source(url, passages="SELECT id, body AS text, h, j AS metadata FROM t", entities=None, edges=None, facts=None),
        storage="float16",
    )
    assert list(half.passage_ids) == [f"00000000-0000-0000-0000-00000000000{x}" for x in "ab"]
    assert half.vectors.dtype == np.float16
    assert np.array_equal(half.vectors, np.array([[1, 2, 0.333], [-1, 0, 65504]], np.float16))
    assert list(half.metadata["a"]) == [1, None]
    real = Index.build(
        source(url, passages="SELECT id, body AS text, r FROM t; ", entities=None, edges=None, facts=None)
    )
    assert real.vectors.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_empty_tables_make_an_index_that_takes_rows(database):
    url, connection = database
    connection.execute(TABLES)
    index = Index.build(source(url))
    assert (index.num_passages, index.num_entities, index.graph.num_nodes, len(index.facts)) == (0, 0, 0, 0)


def test_all_queries_see_one_snapshot(database):
    url, connection = database
    make_tables(connection, ROWS)
    with source(url).snapshot() as snapshot:
        seen = sum(batch.num_rows for batch in snapshot.passages())
        connection.execute("DELETE FROM mentions; DELETE FROM statements; DELETE FROM chunks")
        assert sum(batch.num_rows for batch in snapshot.passages()) == seen == ROWS
        assert sum(batch.num_rows for batch in snapshot.edges()) == ROWS + 5
    assert Index.build(source(url, facts=None, edges=None)).num_passages == 0


@pytest.mark.parametrize(
    ("queries", "error"),
    [
        (
            {"passages": "SELECT id, body FROM chunks"},
            ("missing", "passages", {"given": "id, body"}),
        ),
        ({"passages": "SELECT id, body AS text, title, title FROM chunks"}, ("duplicate", "passages")),
        (
            {"passages": "SELECT id, nothing FROM chunks"},
            ("failed", "passages", {"error": 'column "nothing" does not exist', "place": "the query of passages"}),
        ),
        ({"passages": "SELEC 1"}, ("failed", "passages", {"place": "the query of passages"})),
        (
            {"passages": "DELETE FROM chunks RETURNING id, body AS text"},
            ("failed", "passages", {"place": "the query of passages"}),
        ),
        (
            {"passages": "SELECT id, body AS text, embedding, embedding AS e FROM chunks"},
            ("unsupported", "passages", {"given": "embedding, e"}),
        ),
        (
            {"passages": "SELECT id, body AS text, '{1:1}/3'::sparsevec AS s FROM chunks"},
            ("type", "passages", {"column": "s"}),
        ),
        (
            {"passages": "SELECT id, body AS text, 1.5 AS n FROM chunks"},
            ("type", "passages", {"column": "n", "given": "numeric"}),
        ),
        ({"passages": "SELECT id, body AS text, '{}'::json AS metadata, year FROM chunks"}, ("conflict", "passages")),
        (
            {"passages": "SELECT id, body AS text, current_date AS day FROM chunks"},
            ("type", "passages", {"column": "day", "given": "date32[day]"}),
        ),
        (
            {"passages": "SELECT id % 5 AS id, body AS text FROM chunks ORDER BY chunks.id"},
            ("duplicate", "id", {"given": 0, "place": "passages row 5"}),
        ),
        (
            {
                "passages": "SELECT id, body AS text, CASE id WHEN 4 THEN '[1,2]'::vector ELSE embedding END AS v "
                "FROM chunks"
            },
            ("shape", "v", {"given": 2, "place": "passages row 4 (id 4)"}),
        ),
        (
            {"passages": "SELECT id, body AS text, CASE id WHEN 3 THEN NULL ELSE embedding END AS v FROM chunks"},
            ("missing", "v", {"place": "passages row 3 (id 3)"}),
        ),
        (
            {"passages": "SELECT id, nullif(body, 'Text of 2  naïve 🗼') AS text FROM chunks"},
            ("missing", "text", {"place": "passages row 2 (id 2)"}),
        ),
        (
            {"entities": "SELECT 'Ada' AS name FROM chunks"},
            ("duplicate", "name", {"given": "Ada", "place": "entities row 1"}),
        ),
        (
            {"entities": "SELECT name, 1 AS rank FROM names"},
            ("unknown", "entities", {"given": "rank"}),
        ),
        (
            {"edges": "SELECT 99::bigint AS src_passage, name AS dst_entity FROM names"},
            ("unknown", "src_passage", {"given": 99, "place": "edges row 0"}),
        ),
        (
            {"edges": "SELECT id AS src_passage, 'Byron' AS dst_entity FROM chunks"},
            ("unknown", "dst_entity", {"given": "Byron", "place": "edges row 0"}),
        ),
        (
            {"edges": "SELECT id AS src_passage FROM chunks"},
            ("missing", "dst_passage", {"place": "edges"}),
        ),
        ({"edges": "SELECT id AS src FROM chunks"}, ("unknown", "edges", {"given": "src"})),
        ({"facts": "SELECT 1 AS head FROM chunks"}, ("missing", "facts", {"given": "head"})),
    ],
)
def test_an_invalid_source_is_refused_and_the_old_index_stays(database, tmp_path, queries, error):
    url, connection = database
    make_tables(connection, ROWS)
    old = Index.build(passages=[{"text": "old"}])
    old.save(tmp_path / "index")
    with refused(InputError, *error):
        Index.build(source(url, **queries), scratch=tmp_path).save(tmp_path / "index")
    assert list(Index.open(tmp_path / "index").texts) == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_late_row_of_another_dimension_is_named(database):
    url, connection = database
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, 'text' AS text, ARRAY[i, 1, 2, 3]::real[]::vector AS v "
        "FROM generate_series(0, 49999) i;"
        "UPDATE t SET v = '[1,2,3]' WHERE id = 49990"
    )
    alone = {"entities": None, "edges": None, "facts": None}
    with refused(InputError, "shape", "v", column="v", given=3):
        Index.build(source(url, passages="SELECT id, text, v FROM t ORDER BY id", **alone))


def test_a_server_that_cannot_be_reached_or_is_lost_is_named(database, server, tmp_path):
    url, connection = database
    with refused(StoreError, "connection") as error:
        Index.build(source("postgresql://ada:secret@127.0.0.1:1/x"))
    assert "secret" not in error.value.sentence()
    with refused(InputError, "syntax", "url"):
        Index.build(source("postgresql://a:b:c:secret/%"))
    make_tables(connection, ROWS)
    killed = "SELECT id, body AS text, pg_terminate_backend(pg_backend_pid()) AS gone FROM chunks"
    with refused(StoreError, "connection"):
        Index.build(source(url, passages=killed))
    divided = "SELECT id, body AS text, 1 / (id - 5) AS part FROM chunks ORDER BY id"
    with refused(InputError, "failed", "passages"):
        Index.build(source(url, passages=divided))
    with refused(InputError, "missing", "passages"):
        source(url, passages=None)
    assert refused_command("build", "--from", url, "--out", tmp_path / "i") == about("missing", "passages")
    assert refused_command("build", "--slot", "x", "--out", tmp_path / "i") == about("unused", "slot")


def test_a_table_is_read_to_its_end_before_the_next(database):
    url, connection = database
    make_tables(connection, ROWS)
    with source(url).snapshot() as snapshot:
        passages = iter(snapshot.passages())
        next(passages)
        with refused(InputError, "busy", "entities"):
            next(iter(snapshot.entities()))
        assert sum(batch.num_rows for batch in passages) == ROWS
        assert sum(batch.num_rows for batch in snapshot.entities()) == 3


SQLSTATES = {
    TransientError: ("08006", "40001", "53300", "57P01", "57014", "58030", "55006", "55P03"),
    StoreError: ("57P04", "58P01", "XX000"),
    InputError: ("22012", "42P01", "42501", "55000"),
}


class Failing:
    """A connection of psycopg whose transactions fail with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __enter__(self) -> Failing:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def transaction(self) -> None:
        raise self._error


def raised(error: Exception, monkeypatch: pytest.MonkeyPatch) -> HopfuseError:
    """Return what hopfuse raises for an error of a driver."""
    from hopfuse.stores.postgres import write_hits

    monkeypatch.setattr("psycopg.connect", lambda *args, **options: Failing(error))
    with pytest.raises(HopfuseError) as caught:
        write_hits("postgresql://ada@example.org/news", "hits", [], [])
    return caught.value


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in SQLSTATES.items() for code in codes])
def test_errors_are_told_apart_by_their_sqlstate_whatever_they_say(kind, code, monkeypatch):
    psycopg, adbc = pytest.importorskip("psycopg"), pytest.importorskip("adbc_driver_manager")
    said, status = "cannot be reached; broke off", adbc.AdbcStatusCode.INTERNAL
    for error in (psycopg.errors.lookup(code)(said), adbc.InternalError(said, status_code=status, sqlstate=code)):
        found = raised(error, monkeypatch)
        assert (type(found), found.values["error"]) == (kind, said)


def test_errors_without_an_sqlstate_are_told_apart_by_their_class(monkeypatch):
    psycopg, adbc = pytest.importorskip("psycopg"), pytest.importorskip("adbc_driver_manager")
    io, invalid = adbc.AdbcStatusCode.IO, adbc.AdbcStatusCode.INVALID_ARGUMENT
    for error, kind in (
        (psycopg.OperationalError("syntax error"), TransientError),
        (adbc.OperationalError("syntax error", status_code=io), TransientError),
        (psycopg.DataError("the connection is lost"), InputError),
        (adbc.ProgrammingError("the connection is lost", status_code=invalid), InputError),
    ):
        assert type(raised(error, monkeypatch)) is kind


def test_hits_are_written_into_a_table(database):
    from hopfuse.recipes import HybridRRF
    from hopfuse.stores.postgres import write_hits

    url, connection = database
    make_tables(connection, ROWS)
    connection.execute('CREATE SCHEMA s; CREATE TABLE s."Hits" (question text, rank int, passage bigint, score float8)')
    index = Index.build(source(url))
    found = HybridRRF(index).search(vectors=[[1, 0, 0, 0], [0, 1, 0, 0]], entities=[[], []], k=3)
    assert write_hits(url, "s.Hits", ["q1", "q2"], found) == 6
    assert write_hits(url, "s.Hits", ["q2"], [found[1]], replace=True) == 3
    rows = connection.execute('SELECT question, rank, passage, score FROM s."Hits" ORDER BY 1, 2').fetchall()
    assert rows == [
        (question, rank, hit.id, hit.score)
        for question, hits in zip(("q1", "q2"), found, strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    with refused(InputError, "length", "hits", given=2):
        write_hits(url, "s.Hits", ["q1"], found)
    with refused(InputError, "failed", "table"):
        write_hits(url, "nowhere", ["q1", "q2"], found)
    with refused(InputError, "failed", "table"):
        write_hits(url, "s.Hits", ["q1"], [[*found[0][:2], type(found[0][0])("x", 0, 1.0, "", "", {})]])
    assert connection.execute('SELECT count(*) FROM s."Hits"').fetchone() == (6,)
