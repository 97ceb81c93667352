"""Rows of a store that an index cannot hold are left out, counted and listed; the others make the same index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse.errors import InputError
from hopfuse.index import LeftOut
from hopfuse.stores import ArrowSource, open_source
from refusals import refused
from stores.store_files import saved_bytes

pa = pytest.importorskip("pyarrow")

Row = tuple[Any, Any, Any]
#: Rows of id, text and vector; of these, the last ones are bad.
GOOD: list[Row] = [(at, f"Text {at}.", [float(at), 1.0, -1.0]) for at in range(30)]
NO_VECTOR: Row = (100, "No vector.", None)
SHORT: Row = (101, "A short one.", [1.0, 2.0])
NO_TEXT: Row = (102, None, [1.0, 2.0, 3.0])


def rows_with(*bad: Row) -> list[Row]:
    """Bad rows among good ones."""
    rows = list(GOOD)
    for at, row in enumerate(bad):
        rows.insert(7 * (at + 1), row)
    return rows


def in_arrow(rows: list[Row], folder: Path) -> Any:
    ids, texts, vectors = zip(*rows, strict=True)
    return ArrowSource(
        passages=pa.table({"id": ids, "text": texts, "vector": pa.array(vectors, pa.list_(pa.float32()))})
    )


def in_sqlite(rows: list[Row], folder: Path) -> Any:
    blobs = [(id, text, None if vector is None else np.float32(vector).tobytes()) for id, text, vector in rows]
    with closing(sqlite3.connect(folder / "rows.db")) as db, db:
        db.execute("CREATE TABLE chunks (id INTEGER, text TEXT, vector BLOB)")
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?)", blobs)
    return open_source(f"sqlite:{folder / 'rows.db'}", {"passages": ["SELECT * FROM chunks ORDER BY rowid"]})


def in_duckdb(rows: list[Row], folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(folder / "rows.duckdb"))) as db:
        db.execute("CREATE TABLE chunks (id INTEGER, text TEXT, vector FLOAT[])")
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?)", rows)
    return open_source(f"duckdb:{folder / 'rows.duckdb'}", {"passages": ["SELECT * FROM chunks ORDER BY rowid"]})


def in_lancedb(rows: list[Row], folder: Path) -> Any:
    lancedb = pytest.importorskip("lancedb")
    ids, texts, vectors = zip(*rows, strict=True)
    columns = {"id": ids, "text": texts, "v": pa.array(vectors, pa.list_(pa.float32(), 3))}
    lancedb.connect(str(folder / "lance")).create_table("passages", pa.table(columns))
    return open_source(f"lancedb:{folder / 'lance'}")


def in_qdrant(rows: list[Row], folder: Path) -> Any:
    client = pytest.importorskip("qdrant_client")
    models = client.models
    with closing(client.QdrantClient(path=str(folder / "qdrant"))) as database:
        params = {
            "main": models.VectorParams(size=3, distance="Dot"),
            "other": models.VectorParams(size=1, distance="Dot"),
        }
        database.create_collection("rows", vectors_config=params)
        points = [
            models.PointStruct(
                id=id,
                vector={"other": [1.0]} if vector is None else {"main": vector},
                payload={} if text is None else {"body": text},
            )
            for id, text, vector in rows
        ]
        database.upsert("rows", points)
    return open_source(f"qdrant:{folder / 'qdrant'}?text=body&vector=main", {"passages": ["rows"]})


def in_chroma(rows: list[Row], folder: Path) -> Any:
    chromadb = pytest.importorskip("chromadb")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    collection = chromadb.PersistentClient(path=str(folder / "chroma"), settings=settings).create_collection("rows")
    ids, texts, vectors = zip(*rows, strict=True)
    for id, text, vector in zip(ids, texts, vectors, strict=True):
        collection.add(ids=[f"{id:03}"], documents=None if text is None else [text], embeddings=[vector])
    return open_source(f"chroma:{folder / 'chroma'}", {"passages": ["rows"]})


@pytest.mark.parametrize(
    ("store", "bad"),
    [
        (in_arrow, (NO_VECTOR, SHORT, NO_TEXT)),
        (in_sqlite, (NO_VECTOR, SHORT, NO_TEXT)),
        (in_duckdb, (NO_VECTOR, SHORT, NO_TEXT)),
        (in_lancedb, (NO_VECTOR, NO_TEXT)),
        (in_qdrant, (NO_VECTOR, NO_TEXT)),
        (in_chroma, (NO_TEXT,)),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bad_rows_of_a_store_are_left_out(
    store: Callable[[list[Row], Path], Any], bad: tuple[Row, ...], tmp_path: Path
) -> None:
    (tmp_path / "good").mkdir()
    source, left_out = store(rows_with(*bad), tmp_path), LeftOut()
    found = hf.Index.build(source, left_out=left_out)
    expected = hf.Index.build(store(GOOD, tmp_path / "good"))
    assert saved_bytes(found, tmp_path / "found") == saved_bytes(expected, tmp_path / "expected")
    assert sorted(str(row.key) for row in left_out.rows) == sorted(str(id) for id, *_ in bad)
    assert {row.error.code for row in left_out.rows} <= {"missing", "shape"}
    assert not any("short" in row.reason or "No vector" in row.reason for row in left_out.rows)
    read = hf.Index.build(source, left_out=LeftOut(), reader="words")
    assert list(read.passage_ids) == list(expected.passage_ids)
    with refused(InputError, "missing", "vector" if store is in_qdrant else "text"):
        hf.Index.build(source)


def test_what_refers_to_a_row_that_is_left_out_goes_with_it() -> None:
    passages = pa.table({"id": ["a", "b", "c"], "text": ["one", None, "three"]})
    entities = pa.table({"name": ["x", "y", "z"], "aliases": pa.array([["ex"], None, []])})
    edges = [
        pa.table({"src_passage": ["a", "b", "c", "c"], "dst_entity": ["x", "x", "y", "nobody"]}),
        pa.table({"src_entity": ["x", "x"], "dst_entity": ["y", "z"], "passage": ["a", "b"]}),
    ]
    facts = pa.table({"head": ["x", "x"], "relation": ["r", "r"], "tail": ["y", "y"], "passage": ["a", "b"]})
    source, left_out = ArrowSource(passages=passages, entities=entities, edges=edges, facts=facts), LeftOut(40)
    found = hf.Index.build(source, left_out=left_out)
    assert [(row.table, row.error.field) for row in left_out.rows] == [("passages", "text"), ("edges", "dst_entity")]
    assert left_out.rows[1].key == (("src_passage", "c"), ("dst_entity", "nobody"))
    assert (found.num_passages, found.graph.edges()[0].size, list(found.facts.passages)) == (2, 3, [0])


@pytest.mark.parametrize("first", ["good", "bad"])
def test_a_bad_row_takes_nothing_of_a_good_row_with_its_id(tmp_path: Path, first: str) -> None:
    good, bad = {"id": "a", "text": "one"}, {"id": "a", "text": None}
    rows = [*([good, bad] if first == "good" else [bad, good]), {"id": "b", "text": "two"}]
    tables = {
        "entities": pa.table({"name": ["x", "y"]}),
        "edges": pa.table({"src_passage": ["a", "a", "b"], "dst_entity": ["x", "y", "y"]}),
        "facts": pa.table({"head": ["x"], "relation": ["r"], "tail": ["y"], "passage": ["a"]}),
    }
    left_out = LeftOut(50)
    found = hf.Index.build(ArrowSource(passages=pa.Table.from_pylist(rows), **tables), left_out=left_out)
    whole = hf.Index.build(ArrowSource(passages=pa.Table.from_pylist([good, rows[-1]]), **tables))
    assert saved_bytes(found, tmp_path / "found") == saved_bytes(whole, tmp_path / "whole")
    assert [(row.table, row.key) for row in left_out.rows] == [("passages", "a")]


def test_batches_of_edges_compare_what_was_left_out_with_all_ids_once() -> None:
    class Parts(list[Any]):
        passes = 0

        def __iter__(self) -> Any:
            self.passes += 1
            return super().__iter__()

    left_out, parts = LeftOut(), Parts([np.array([hash("a"), hash("b")]), np.array([hash("c")])])
    left_out._gone["passages"], left_out._kept["passages"] = {"b", "x"}, parts
    make, columns = resolve_name("hopfuse.io.tables:make_table"), ("src_passage",)
    spec = resolve_name("hopfuse.io.tables:Spec")("edges", (), columns, (), others=False)
    edges = [make(spec, {"src_passage": ["a", "x"]}, 2, str, columns) for _ in range(5)]
    assert [left_out._without_gone(table).num_rows for table in edges] == [1] * 5
    assert (left_out._gone["passages"], parts.passes) == ({"x"}, 1)
    left_out._gone["passages"].add("c")
    assert left_out._without_gone(edges[0]).num_rows == 1
    assert (left_out._gone["passages"], parts.passes) == ({"x"}, 2)


def test_metadata_of_another_type_leave_their_row_out(tmp_path: Path) -> None:
    given = ['{"year": 1843}', '{"year": "then"}', "no object", '{"year": 1850, "place": {"x": 1}}', None, "{}"]
    ids = list(range(len(given)))
    left_out = LeftOut(60)
    passages = pa.table({"id": ids, "text": ["t"] * len(ids), "metadata": given})
    found = hf.Index.build(ArrowSource(passages=passages), left_out=left_out)
    kept = [at for at in ids if at not in (1, 2, 3)]
    expected = hf.Index.build(ArrowSource(passages=passages.take(kept)))
    assert saved_bytes(found, tmp_path / "found") == saved_bytes(expected, tmp_path / "expected")
    assert [row.key for row in left_out.rows] == [1, 2, 3]
    assert not any("then" in row.reason or "no object" in row.reason for row in left_out.rows)


def test_more_than_may_be_left_out_end_the_build() -> None:
    source = in_arrow(rows_with(NO_VECTOR, SHORT, NO_TEXT), Path())
    with refused(InputError, "limit", "skip_failed", given=2, total="33 passages"):
        hf.Index.build(source, left_out=LeftOut(3))
    with refused(InputError, "missing", "vector"):
        hf.Index.build(source, left_out=LeftOut(0))
    with refused(InputError, "range", "skip_failed"):
        LeftOut(101)
    with refused(InputError, "unused", "left_out"):
        hf.Index.build(passages=[], left_out=LeftOut())
    with refused(InputError, "missing", "vector"):  # not the rows: all of them
        hf.Index.build(in_arrow([NO_VECTOR], Path()), left_out=LeftOut(100))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8193, 20_000])
def test_any_rows_may_be_bad(count: int) -> None:
    rng = np.random.default_rng(count)
    bad = rng.random(count) < rng.choice([0.01, 0.3])
    texts = [None if one else f"t{at}" for at, one in enumerate(bad)]
    passages = pa.table({"id": np.arange(count), "text": pa.array(texts, pa.string())})
    batches = passages.to_batches(max_chunksize=3_000) or [pa.RecordBatch.from_pylist([], schema=passages.schema)]
    left_out = LeftOut(100)
    if count and bad.all():
        return
    found = hf.Index.build(ArrowSource(passages=batches), left_out=left_out)
    assert list(found.passage_ids) == np.flatnonzero(~bad).tolist()
    assert sorted(row.key for row in left_out.rows) == np.flatnonzero(bad).tolist()


def test_the_program_lists_what_it_leaves_out(tmp_path: Path) -> None:
    in_sqlite(rows_with(NO_VECTOR, SHORT, NO_TEXT), tmp_path)
    failed, query = tmp_path / "failed.jsonl", "SELECT * FROM chunks ORDER BY rowid"
    given = ("build", "--from", f"sqlite:{tmp_path / 'rows.db'}", "--passages", query, "--out", tmp_path / "index")
    said = hopfuse(*given, "--failed", failed).stderr
    assert "33 passages read, without 3 that failed" in said
    assert "hopfuse follow" not in said  # it follows PostgreSQL alone
    assert "They have no place in the index" in said
    rows = [json.loads(line) for line in failed.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row.get("text")) for row in rows] == [(100, "No vector."), (102, None), (101, "A short one.")]
    assert all(row["failure"] for row in rows)
    assert hf.Index.open(tmp_path / "index").num_passages == 30
    error = refused_command(*given, "--overwrite", "--skip-failed", "5")
    assert error == about("limit", "skip_failed", given=2, total="33 passages")
    assert "100" in hopfuse(*given, "--overwrite", "--reader", "words", "--skip-failed", "20").stderr
