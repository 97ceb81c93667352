"""Indexes of DuckDB, SQLite, ladybug, LanceDB, Chroma, Qdrant and Neo4j's exports, from real stores filled here."""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError, StoreError
from hopfuse.stores import VectorsChangedWarning, is_place, open_source
from hopfuse.stores.apoc import read_apoc
from hopfuse.stores.neo4j import Labels, Neo4jSource, read_records
from hopfuse.stores.qdrant import QdrantSource
from hopfuse.stores.tables import as_float32
from refusals import refused

pa = pytest.importorskip("pyarrow")

COUNT, DIM = 30, 4
IDS = [f"p{at}" for at in range(COUNT)]
TEXTS = [f"Passage {at} of {'Ada' if at % 2 else 'Babbage'}." for at in range(COUNT)]
VECTORS = np.random.default_rng(3).normal(size=(COUNT, DIM)).astype(np.float32)
YEARS = [1800 + at for at in range(COUNT)]
NAMES = ["Ada", "Babbage"]
MENTIONS = [(id, NAMES[(at + 1) % 2]) for at, id in enumerate(IDS)]


def of_files(*, graph: bool = True, vectors: Any = VECTORS) -> hf.Index:
    """The index of the same rows without a store."""
    passages = [
        {"id": id, "text": text, "metadata": {"year": year}} for id, text, year in zip(IDS, TEXTS, YEARS, strict=True)
    ]
    if not graph:
        return hf.Index.build(passages=passages, vectors=vectors)
    edges = [
        {"src": at, "dst": COUNT + NAMES.index(name), "type": "mentions", "weight": 1.0}
        for at, (_, name) in enumerate(MENTIONS)
    ]
    return hf.Index.build(passages=passages, vectors=vectors, entities=NAMES, graph=edges)


def saved(index: hf.Index, folder: Path) -> list[bytes]:
    index.save(folder)
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "CURRENT"]


def assert_equal(found: hf.Index, expected: hf.Index, tmp_path: Path) -> None:
    assert list(found.texts) == TEXTS
    assert saved(found, tmp_path / "found") == saved(expected, tmp_path / "expected")


QUERIES = {
    "passages": "SELECT id, text, v AS vector, year FROM chunks ORDER BY n",
    "entities": "SELECT name FROM entities ORDER BY n",
    "edges": "SELECT id AS src_passage, name AS dst_entity, 'mentions' AS type, 1.0 AS weight FROM mentions ORDER BY n",
}


# ---- SQL and Cypher -------------------------------------------------------------------------------------------------


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE chunks (n INTEGER, id TEXT, text TEXT, v BLOB, year INTEGER)")
        db.execute("CREATE TABLE entities (n INTEGER, name TEXT)")
        db.execute("CREATE TABLE mentions (n INTEGER, id TEXT, name TEXT)")
        blobs = [vector.tobytes() for vector in VECTORS]
        db.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", zip(range(COUNT), IDS, TEXTS, blobs, YEARS, strict=True)
        )
        db.executemany("INSERT INTO entities VALUES (?, ?)", enumerate(NAMES))
        db.executemany("INSERT INTO mentions VALUES (?, ?, ?)", [(at, *one) for at, one in enumerate(MENTIONS)])
    return path


def test_sqlite(sqlite_file: Path, tmp_path: Path) -> None:
    found = hf.Index.build(open_source(f"sqlite:{sqlite_file}", {name: [one] for name, one in QUERIES.items()}))
    assert_equal(found, of_files(), tmp_path)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            "UPDATE chunks SET v = x'00' WHERE n = 20",
            (InputError, "type", "vector", {"given": "a list with a null", "place": "passages row 20 (id 'p20')"}),
        ),
        (
            "UPDATE chunks SET v = x'0000803f' WHERE n = 20",
            (InputError, "shape", "vector", {"given": 1, "allowed": 4, "place": "passages row 20 (id 'p20')"}),
        ),
        (
            "UPDATE chunks SET v = NULL WHERE n = 20",
            (InputError, "missing", "vector", {"place": "passages row 20 (id 'p20')"}),
        ),
        (
            "UPDATE chunks SET id = 'p3' WHERE n = 20",
            (InputError, "duplicate", "id", {"given": "p3", "place": "passages row 20"}),
        ),
        (
            "UPDATE chunks SET year = 'then' WHERE n = 20",
            (InputError, "type", "passages", {"column": "year", "given": "integer and text"}),
        ),
        (
            "UPDATE mentions SET name = 'Byron' WHERE n = 7",
            (InputError, "unknown", "dst_entity", {"given": "Byron", "place": "edges row 7"}),
        ),
        (
            "UPDATE chunks SET text = NULL WHERE n = 20",
            (InputError, "missing", "text", {"place": "passages row 20 (id 'p20')"}),
        ),
        (
            "UPDATE chunks SET v = '[1.0, 2.0]'",
            (InputError, "type", "passages", {"row": 0, "given": "text, '[1.0, 2.0]'"}),
        ),
        ("UPDATE chunks SET v = NULL", (InputError, "type", "passages", {"row": 0, "given": "NULL"})),
        ("DROP TABLE entities", (StoreError, "failed", "entities", {"given": "SELECT name FROM entities ORDER BY n"})),
    ],
)
def test_an_invalid_sqlite_database_is_refused_by_name(sqlite_file: Path, change: str, error: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(sqlite_file)) as db, db:
        db.execute(change)
    with refused(*error):
        hf.Index.build(open_source(f"sqlite:{sqlite_file}", {name: [one] for name, one in QUERIES.items()}))


def test_a_query_of_sqlite_is_run_twice_whatever_its_columns(sqlite_file: Path) -> None:
    source = open_source(f"sqlite:{sqlite_file}", {"passages": [QUERIES["passages"] + " ;  "]})
    statements: list[str] = []
    with source.snapshot() as snapshot:
        connection = snapshot._read.args[0]
        connection.set_trace_callback(statements.append)
        assert sum(batch.num_rows for batch in snapshot.passages()) == COUNT
    assert len(statements) == 2


@pytest.mark.parametrize("name", ["with space.db", "a?b=c.db", "a#b%20.db", "C:notes.db"])
def test_names_of_files_are_taken_as_they_are(sqlite_file: Path, name: str) -> None:
    place = f"sqlite:{sqlite_file.rename(sqlite_file.with_name(name))}"
    assert hf.Index.build(open_source(place, {"passages": [QUERIES["passages"]]})).num_passages == COUNT
    assert not is_place(name)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT 'a' AS id, 'b' AS id, 't' AS text", ("duplicate", "passages")),
        ("CREATE TEMP TABLE x (a)", ("unsupported", "passages", {"given": "CREATE TEMP TABLE x (a)"})),
        ("SELECT 'a' AS id, 't' AS text, '[1, 2]' AS vector", ("type", "passages", {"given": "text, '[1, 2]'"})),
    ],
)
def test_an_invalid_sqlite_query_is_refused_by_name(sqlite_file: Path, query: str, error: tuple[Any, ...]) -> None:
    with refused((InputError, StoreError), *error):
        hf.Index.build(open_source(f"sqlite:{sqlite_file}", {"passages": [query]}))


def test_no_file_of_sqlite_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database. " * 50)
    with refused(StoreError, "failed", "path"):
        hf.Index.build(open_source(f"sqlite:{tmp_path / 'text.db'}", {"passages": ["SELECT 1"]}))


def test_an_invalid_location_is_refused_by_name(sqlite_file: Path) -> None:
    for rest, error in (
        ("?mode", ("syntax", "place")),
        ("?mode=ro", ("unknown", "place", {"given": "mode"})),
    ):
        with refused(InputError, *error):
            open_source(f"sqlite:{sqlite_file}{rest}", {"passages": ["SELECT 1"]})


def test_stores_without_rows(tmp_path: Path, sqlite_file: Path) -> None:
    import pyarrow.parquet as parquet

    parquet.write_table(
        pa.table({"id": pa.array([], pa.string()), "text": pa.array([], pa.string())}), tmp_path / "passages.parquet"
    )
    assert hf.Index.build(open_source(str(tmp_path))).num_passages == 0
    none = [f"{QUERIES['passages'].replace('ORDER', 'WHERE false ORDER')}"]
    assert hf.Index.build(open_source(f"sqlite:{sqlite_file}", {"passages": none})).num_passages == 0


def test_one_transaction_reads_all_tables_of_sqlite(sqlite_file: Path) -> None:
    with closing(sqlite3.connect(sqlite_file)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    source = open_source(f"sqlite:{sqlite_file}", {name: [one] for name, one in QUERIES.items()})
    with source.snapshot() as snapshot:
        first = next(iter(snapshot.entities()))
        with closing(sqlite3.connect(sqlite_file)) as db, db:
            db.execute("DELETE FROM chunks")
        assert first.num_rows == len(NAMES)
        assert sum(batch.num_rows for batch in snapshot.passages()) == COUNT


def duckdb_file(tmp_path: Path) -> Path:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "notes.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute(f"CREATE TABLE chunks (n INTEGER, id TEXT, text TEXT, v FLOAT[{DIM}], year BIGINT)")
        db.execute("CREATE TABLE entities (n INTEGER, name TEXT)")
        db.execute("CREATE TABLE mentions (n INTEGER, id TEXT, name TEXT)")
        rows = zip(range(COUNT), IDS, TEXTS, VECTORS.tolist(), YEARS, strict=True)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", list(rows))
        db.executemany("INSERT INTO entities VALUES (?, ?)", list(enumerate(NAMES)))
        db.executemany("INSERT INTO mentions VALUES (?, ?, ?)", [(at, *one) for at, one in enumerate(MENTIONS)])
    return path


def test_duckdb(tmp_path: Path) -> None:
    place = f"duckdb:{duckdb_file(tmp_path)}"
    edges = QUERIES["edges"].replace("1.0 AS", "1.0::DOUBLE AS")
    queries = {name: [one] for name, one in (QUERIES | {"edges": edges}).items()}
    assert_equal(hf.Index.build(open_source(place, queries)), of_files(), tmp_path)
    with refused(StoreError, "failed", "passages", given="SELECT nothing FROM nowhere"):
        hf.Index.build(open_source(place, {"passages": ["SELECT nothing FROM nowhere"]}))


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT 'a' AS id, 'b' AS id, 't' AS text", (InputError, "duplicate", "passages")),
        ("SELECT 'a' AS id, 't' AS text, '[1, 2]' AS vector", (InputError, "type", "passages")),
        ("SELECT 'a' AS id, NULL AS text", (InputError, "missing", "text", {"place": "passages row 0 (id 'a')"})),
        (
            "SELECT i % 9000 AS id, 't' AS text FROM range(9001) r(i)",
            (InputError, "duplicate", "id", {"given": 0, "place": "passages row 9000"}),
        ),
        ("CREATE TABLE x(a INT)", (InputError, "missing", "passages", {"given": "Count"})),
        (
            "SELECT i AS id, CAST(if(i = 9000, 'x', '1') AS INT)::TEXT AS text FROM range(9001) r(i)",
            (StoreError, "failed", "passages"),
        ),
        (
            "SELECT i AS id, 't' AS text, if(i = 9000, [1.0::FLOAT], [1.0::FLOAT, 2]) AS v FROM range(9001) r(i)",
            (InputError, "shape", "v", {"given": 1, "place": "passages row 9000 (id 9000)"}),
        ),
    ],
)
def test_an_invalid_duckdb_query_is_refused_by_name(query: str, error: tuple[Any, ...]) -> None:
    pytest.importorskip("duckdb")
    with refused(*error):
        hf.Index.build(open_source("duckdb::memory:", {"passages": [query]}))


def test_duckdb_gives_no_rows_and_decimal_weights() -> None:
    pytest.importorskip("duckdb")
    queries = {"passages": ["SELECT i AS id, 't' AS text FROM range(2) r(i) WHERE i < 0"]}
    assert hf.Index.build(open_source("duckdb::memory:", queries)).num_passages == 0
    queries = {
        "passages": ["SELECT i AS id, 't' AS text FROM range(2) r(i)"],
        "edges": ["SELECT 0 AS src_passage, 1 AS dst_passage, 1.5 AS weight"],
    }
    assert hf.Index.build(open_source("duckdb::memory:", queries)).graph is not None
    queries["edges"] = ["SELECT 0 AS src_passage, 7 AS dst_passage"]
    with refused(InputError, "unknown", "dst_passage", column="dst_passage", given=7):
        hf.Index.build(open_source("duckdb::memory:", queries))


def test_tables_of_duckdb_can_be_read_in_turns() -> None:
    pytest.importorskip("duckdb")
    queries = {
        "passages": ["SELECT i AS id, 't' AS text FROM range(20000) r(i)"],
        "entities": ["SELECT i::TEXT AS name FROM range(30000) r(i)"],
    }
    with open_source("duckdb::memory:", queries).snapshot() as snapshot:
        tables = [iter(snapshot.passages()), iter(snapshot.entities())]
        rows, left = [0, 0], [0, 1]
        while left:
            for at in list(left):
                batch = next(tables[at], None)
                if batch is None:
                    left.remove(at)
                else:
                    rows[at] += batch.num_rows
        assert rows == [20000, 30000]
        next(iter(snapshot.passages()))  # and left there
        assert sum(batch.num_rows for batch in snapshot.entities()) == 30000


def test_duckdb_admits_no_writer_while_it_is_read(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = duckdb_file(tmp_path)
    with open_source(f"duckdb:{path}", {"passages": [QUERIES["passages"]]}).snapshot() as snapshot:
        begun = iter(snapshot.passages())
        next(begun)
        with pytest.raises(duckdb.Error):
            duckdb.connect(str(path)).execute("DELETE FROM chunks")
        assert sum(batch.num_rows for batch in begun) == COUNT


def test_duckdb_reads_partitions_of_parquet(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    import pyarrow.parquet as parquet

    for year in (1, 2):
        part = tmp_path / f"year={year}"
        part.mkdir()
        parquet.write_table(pa.table({"id": [f"p{year}"], "body": [f"In {year}."]}), part / "rows.parquet")
    files = f"read_parquet('{tmp_path}/*/*.parquet', hive_partitioning = true)"
    source = open_source("duckdb::memory:", {"passages": [f"SELECT id, body AS text, year FROM {files} ORDER BY id"]})
    index = hf.Index.build(source)
    assert list(index.texts) == ["In 1.", "In 2."]
    assert index.metadata.row(1) == {"year": 2}


def test_ladybug(tmp_path: Path) -> None:
    ladybug = pytest.importorskip("ladybug")
    path = tmp_path / "graph.lbug"
    with ladybug.Database(str(path)) as database, ladybug.Connection(database) as db:
        db.execute(f"CREATE NODE TABLE Chunk(at INT64 PRIMARY KEY, id STRING, text STRING, v FLOAT[{DIM}], year INT64)")
        db.execute("CREATE NODE TABLE Entity(name STRING PRIMARY KEY)")
        db.execute("CREATE REL TABLE MENTIONS(FROM Chunk TO Entity)")
        for at, (id, text, vector, year) in enumerate(zip(IDS, TEXTS, VECTORS.tolist(), YEARS, strict=True)):
            row = {"at": at, "id": id, "text": text, "v": vector, "year": year}
            db.execute("CREATE (:Chunk {at: $at, id: $id, text: $text, v: $v, year: $year})", row)
        for name in NAMES:
            db.execute("CREATE (:Entity {name: $name})", {"name": name})
        for id, name in MENTIONS:
            found = "MATCH (c:Chunk), (e:Entity) WHERE c.id = $id AND e.name = $name CREATE (c)-[:MENTIONS]->(e)"
            db.execute(found, {"id": id, "name": name})
    queries = {
        "passages": ["MATCH (c:Chunk) RETURN c.id AS id, c.text AS text, c.v AS v, c.year AS year ORDER BY c.at"],
        "entities": ["MATCH (e:Entity) RETURN e.name AS name ORDER BY e.name"],
        "edges": [
            "MATCH (c:Chunk)-[:MENTIONS]->(e:Entity) RETURN c.id AS src_passage, e.name AS dst_entity, "
            "'mentions' AS type, 1.0 AS weight ORDER BY c.at"
        ],
    }
    assert_equal(hf.Index.build(open_source(f"ladybug:{path}", queries)), of_files(), tmp_path)
    with refused(StoreError, "failed", "passages", given="MATCH (n:Nothing) RETURN n"):
        hf.Index.build(open_source(f"ladybug:{path}", {"passages": ["MATCH (n:Nothing) RETURN n"]}))


# ---- Tables and collections -----------------------------------------------------------------------------------------


def listed() -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), DIM)


def test_lancedb(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    database = lancedb.connect(str(tmp_path / "lance"))
    chunks = pa.table({"id": IDS, "body": TEXTS, "v": listed(), "year": YEARS})
    table = database.create_table("chunks", chunks)
    database.create_table("entities", pa.table({"name": NAMES}))
    ends = {"src_passage": [id for id, _ in MENTIONS], "dst_entity": [name for _, name in MENTIONS]}
    database.create_table("edges", pa.table(ends | {"type": ["mentions"] * COUNT, "weight": [1.0] * COUNT}))
    place = f"lancedb:{tmp_path / 'lance'}?text=body"
    source = open_source(place, {"passages": ["chunks"]})
    with source.snapshot() as snapshot:  # of one version
        table.delete("year > 1810")
        assert sum(batch.num_rows for batch in snapshot.passages()) == COUNT
    table.restore(1)
    assert_equal(hf.Index.build(source), of_files(), tmp_path)
    with refused(StoreError, "unknown", "passages", given="passages"):
        hf.Index.build(open_source(place))


def test_lancedb_says_which_columns_are_read(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    chunks = pa.table({"id": IDS, "text": TEXTS, "v": listed(), "w": listed(), "title": TEXTS, "headline": TEXTS})
    lancedb.connect(str(tmp_path)).create_table("passages", chunks)
    with refused(InputError, "unsupported", "passages", given="v, w"):
        hf.Index.build(open_source(f"lancedb:{tmp_path}"))
    index = hf.Index.build(open_source(f"lancedb:{tmp_path}?vector=w"))
    assert np.array_equal(index.corpus.as_float32(), VECTORS)
    with refused(InputError, "duplicate", "passages", column="title"):
        hf.Index.build(open_source(f"lancedb:{tmp_path}?vector=w&title=headline"))
    with refused(StoreError, "unknown", "columns['text']", given="boddy"):
        hf.Index.build(open_source(f"lancedb:{tmp_path}?text=boddy"))
    with refused(InputError, "unknown", "place", given="titel"):
        open_source(f"lancedb:{tmp_path}?titel=headline")


def test_an_invalid_qdrant_collection_is_refused_and_its_folder_is_released(tmp_path: Path) -> None:
    client = pytest.importorskip("qdrant_client")
    models, folder = client.models, tmp_path / "qdrant"
    (tmp_path / "other").mkdir()
    with refused(InputError, "missing", "path"):
        open_source(f"qdrant:{tmp_path / 'other'}", {"passages": ["x"]})
    assert list((tmp_path / "other").iterdir()) == []
    sparse = {"words": models.SparseVectorParams()}
    with closing(client.QdrantClient(path=str(folder))) as database:
        database.create_collection("sparse", sparse_vectors_config=sparse)
        database.create_collection("none", vectors_config=models.VectorParams(size=2, distance="Dot"))
        for name, second, title in (("mixed", "5c56c793-69f3-4fbf-87e6-c4bf54c28c26", None), ("titles", 2, 1984)):
            params = models.VectorParams(size=2, distance="Dot")
            database.create_collection(name, vectors_config=params, sparse_vectors_config=sparse)
            words = models.SparseVector(indices=[1], values=[1.0])
            database.upsert(
                name,
                [
                    models.PointStruct(id=1, vector={"words": words, "": [1.0, 2.0]}, payload={"text": "one"}),
                    models.PointStruct(id=second, vector=[3.0, 4.0], payload={"text": "two", "title": title}),
                ],
            )
    for name, error in (
        ("absent", (StoreError, "unknown", "collection", {"given": "absent"})),
        ("sparse", (InputError, "missing", "collection", {"given": "sparse"})),
        (
            "mixed",
            (
                InputError,
                "type",
                "id",
                {
                    "given": "5c56c793-69f3-4fbf-87e6-c4bf54c28c26",
                    "place": "passages row 1",
                },
            ),
        ),
        (
            "titles",
            (InputError, "type", "title", {"given": 1984, "place": "passages row 1 (id 2)"}),
        ),
    ):
        with refused(*error):
            hf.Index.build(open_source(f"qdrant:{folder}", {"passages": [name]}))
        with closing(client.QdrantClient(path=str(folder))):  # nobody holds it
            pass
    index = hf.Index.build(open_source(f"qdrant:{folder}?title=none", {"passages": ["titles"]}))
    assert index.corpus.as_float32().tolist() == [[1, 2], [3, 4]]
    assert hf.Index.build(open_source(f"qdrant:{folder}", {"passages": ["none"]})).num_passages == 0


def test_qdrant(tmp_path: Path) -> None:
    client = pytest.importorskip("qdrant_client")
    models, folder = client.models, tmp_path / "qdrant"
    with closing(client.QdrantClient(path=str(folder))) as database:
        for name, distance in (("dots", "DOT"), ("cosines", "COSINE")):
            params = models.VectorParams(size=DIM, distance=models.Distance[distance])
            database.create_collection(name, vectors_config=params)
            points = [
                models.PointStruct(id=at, vector=vector, payload={"page_content": text, "year": year})
                for at, (vector, text, year) in enumerate(zip(VECTORS.tolist(), TEXTS, YEARS, strict=True))
            ]
            database.upsert(name, points)
        # While it is open it gives the vectors as a server does, later as they were put in.
        source = QdrantSource(client=database, collection="cosines", text="page_content")
        with pytest.warns(VectorsChangedWarning, match="'cosines' normalised"):
            normalised = hf.Index.build(source)
        assert np.allclose(np.linalg.norm(normalised.corpus.as_float32(), axis=1), 1, atol=1e-6)
    place = f"qdrant:{folder}?text=page_content"
    found = hf.Index.build(open_source(place, {"passages": ["dots"]}))
    assert list(found.texts) == TEXTS
    assert list(found.passage_ids) == list(range(COUNT))
    assert found.metadata.row(5) == {"year": 1805}
    assert np.array_equal(found.corpus.as_float32(), VECTORS)
    assert np.array_equal(hf.Index.build(open_source(place, {"passages": ["cosines"]})).corpus.as_float32(), VECTORS)
    with refused(StoreError, "unknown", "collection", given="others"):
        hf.Index.build(open_source(place, {"passages": ["others"]}))
    with refused(InputError, "missing", "body", place="passages row 0 (id 0)"):
        hf.Index.build(open_source(f"qdrant:{folder}?text=body", {"passages": ["dots"]}))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_chroma(tmp_path: Path) -> None:
    chromadb = pytest.importorskip("chromadb")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(path=str(tmp_path / "chroma"), settings=settings)
    collection = client.create_collection("chunks")
    metadata = [{"year": year} for year in YEARS]
    collection.add(ids=IDS, documents=TEXTS, embeddings=VECTORS, metadatas=metadata)
    place = f"chroma:{tmp_path / 'chroma'}"
    with warnings.catch_warnings():
        warnings.simplefilter("error", VectorsChangedWarning)  # float64 of float32 loses nothing
        found = hf.Index.build(open_source(place, {"passages": ["chunks"]}))
    assert_equal(found, of_files(graph=False), tmp_path)
    with refused(StoreError, "unknown", "collection", given="others"):
        hf.Index.build(open_source(place, {"passages": ["others"]}))
    client.create_collection("none")
    assert hf.Index.build(open_source(place, {"passages": ["none"]})).num_passages == 0
    collection.update(ids=["p7"], metadatas=[{"title": 7}])
    with refused(InputError, "type", "title", given=7, place="passages row 7 (id 'p7')"):
        hf.Index.build(open_source(place, {"passages": ["chunks"]}))
    with refused(InputError, "missing", "path"):
        open_source(f"chroma:{tmp_path}", {"passages": ["chunks"]})
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


# ---- Neo4j ----------------------------------------------------------------------------------------------------------

NODES = [
    ("0", "Chunk", {"id": "a", "text": "Ada wrote.", "embedding": [1.0, 0.0], "year": 1843}),
    ("1", "Chunk", {"id": "b", "text": "Babbage built.", "embedding": [0.0, 1.0], "year": 1837}),
    ("2", "Entity", {"name": "Ada"}),
    ("3", "Entity", {"name": "Babbage"}),
    ("4", "Other", {"name": "left out"}),
]
LINKS = [
    ("MENTIONS", "0", "2", {}),
    ("MENTIONS", "1", "3", {}),
    ("KNEW", "2", "3", {"weight": 2.0}),
    ("IS", "4", "2", {}),
]


def json_export(path: Path) -> None:
    lines = [{"type": "node", "id": id, "labels": [label], "properties": values} for id, label, values in NODES]
    lines += [
        {
            "id": str(at),
            "type": "relationship",
            "label": kind,
            "properties": values,
            "start": {"id": start, "labels": []},
            "end": {"id": end, "labels": []},
        }
        for at, (kind, start, end, values) in enumerate(LINKS)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def csv_export(path: Path) -> None:
    rows = ['"_id","_labels","embedding","id","name","text","weight","year","_start","_end","_type"']
    for id, label, values in NODES:
        cells = [id, f":{label}", json.dumps(values["embedding"]) if "embedding" in values else ""]
        cells += [str(values.get(name, "")) for name in ("id", "name", "text", "weight", "year")]
        rows.append(",".join('"' + cell.replace('"', '""') + '"' for cell in [*cells, "", "", ""]))
    for kind, start, end, values in LINKS:
        rows.append(f',,,,,,"{values.get("weight", "")}",,"{start}","{end}","{kind}"')
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def arrow_export(path: Path) -> None:
    rows = [{"<id>": int(id), "<labels>": [label], **values} for id, label, values in NODES]
    rows += [
        {"<source.id>": int(start), "<target.id>": int(end), "<type>": kind, **values}
        for kind, start, end, values in LINKS
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(("ending", "write"), [("json", json_export), ("csv", csv_export), ("arrow", arrow_export)])
def test_exports_of_apoc(tmp_path: Path, ending: str, write: Any) -> None:
    path = tmp_path / f"all.{ending}"
    write(path)
    index = hf.Index.build(open_source(f"apoc:{path}"))
    assert list(index.texts) == ["Ada wrote.", "Babbage built."]
    assert list(index.passage_ids) == ["a", "b"]
    assert list(index.entity_names) == ["Ada", "Babbage"]
    assert index.metadata.row(0) == {"year": "1843" if ending == "csv" else 1843}
    assert index.corpus.as_float32().tolist() == [[1, 0], [0, 1]]
    assert index.graph.edge_type_names == ("MENTIONS", "KNEW")
    walk = hf.ppr(index.graph, [{2: 1.0}]).scores
    expected = hf.Graph.from_edges([0, 1, 2], [2, 3, 3], [1.0, 1.0, 2.0], num_nodes=4)
    assert np.allclose(walk, hf.ppr(expected, [{2: 1.0}]).scores, atol=1e-6)


def test_records_of_the_driver(tmp_path: Path) -> None:
    neo4j = pytest.importorskip("neo4j")
    from neo4j.graph import Graph, Node, Relationship

    graph = Graph()
    nodes = {id: Node(graph, id, int(id), [label], values) for id, label, values in NODES}
    records = [neo4j.Record({"n": node}) for node in nodes.values()]
    for at, (kind, start, end, values) in enumerate(LINKS):
        link = graph.relationship_type(kind)(graph, str(at), at, values)
        link._start_node, link._end_node = nodes[start], nodes[end]
        assert isinstance(link, Relationship)
        records.append(neo4j.Record({"r": link}))
    by_records = hf.Index.build(Neo4jSource(lambda: read_records(records)))
    path = tmp_path / "all.json"
    json_export(path)
    by_file = hf.Index.build(Neo4jSource(lambda: read_apoc(path)))
    assert saved(by_records, tmp_path / "records") == saved(by_file, tmp_path / "file")
    with refused(InputError, "type", "records", given="str"):
        list(read_records([neo4j.Record({"n": "text"})]))


def test_an_invalid_export_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    json_export(path)
    with refused(InputError, "type", "text", node="0", given=None):
        hf.Index.build(open_source(f"apoc:{path}?text=body"))
    with refused(InputError, "unknown", "place", given="colour"):
        open_source(f"apoc:{path}?colour=red")
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type": "relationship", "label": "KNEW"}\n')
    with refused(FormatError, "damaged"):
        hf.Index.build(Neo4jSource(lambda: read_apoc(path), Labels()))
    for wrong in ('"properties": [1]', '"properties": true', '"labels": 7', '"x": ' + "[" * 100_000):
        path.write_text(f'{{"type": "node", "id": "0", {wrong}}}\n', encoding="utf-8")
        with refused(FormatError, "damaged", row="line 1"):
            list(read_apoc(path))
    with refused(InputError, "choice", "path"):
        list(read_apoc(path.rename(tmp_path / "all.txt")))


def test_a_row_of_an_export_without_an_id_is_refused(tmp_path: Path) -> None:
    table, records = tmp_path / "all.csv", tmp_path / "all.arrow"
    csv_export(table)
    table.write_text(table.read_text(encoding="utf-8").replace('"2","3","KNEW"', '"2","","KNEW"'), encoding="utf-8")
    with refused(FormatError, "damaged", row="line 9"):
        list(read_apoc(table))
    written = pa.table({"<id>": [1, None], "<labels>": [["Chunk"], ["Chunk"]]})
    with pa.OSFile(str(records), "wb") as file, pa.ipc.new_stream(file, written.schema) as writer:
        writer.write_table(written)
    with refused(FormatError, "damaged", row="row 2"):
        list(read_apoc(records))


def test_a_damaged_arrow_export_is_refused_before_its_values_are_read(tmp_path: Path) -> None:
    """pyarrow does not read every type, and may end the process at an offset that points beyond the text."""
    path = tmp_path / "all.arrow"
    arrow_export(path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    read = refused_ones = 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.integers(8, len(whole))] = rng.integers(256)
        path.write_bytes(changed)
        try:
            read += len(list(read_apoc(path))) > 0
        except FormatError:
            refused_ones += 1
    assert min(read, refused_ones) > 30


def test_a_stores_vector_beyond_float32_is_infinite_which_a_build_refuses() -> None:
    with pytest.warns(VectorsChangedWarning, match="a store returns"):
        found = as_float32(np.array([[1e300, 1.0]]), "a store")
    assert found.tolist() == [[np.inf, 1.0]]
    with refused(InputError, "finite", "vectors[0]"):
        hf.Index.build(passages=[{"text": "a"}], vectors=found)


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for scheme in ("sqlite", "apoc"):
        with refused(InputError, "missing", "path"):
            open_source(f"{scheme}:{tmp_path / 'nothing.db'}", {"passages": ["SELECT 1"]} if scheme == "sqlite" else {})
    assert list(tmp_path.iterdir()) == []


def test_only_postgresql_is_followed(tmp_path: Path) -> None:
    pytest.importorskip("click")
    from cli.cli_files import about
    from cli.cli_files import refused as refused_command

    hf.Index.build(passages=[{"text": "one"}]).save(tmp_path / "index")
    for place in (*(f"{scheme}:x" for scheme in ("duckdb", "sqlite", "lancedb", "chroma", "apoc")), str(tmp_path)):
        for option in ("--once", "--drop"):
            error = refused_command("follow", tmp_path / "index", "--from", place, option)
            assert error == about("unsupported", "place", given=place)


def test_the_bench_of_stores_reads_what_is_installed() -> None:
    pytest.importorskip("click")
    from click.testing import CliRunner

    from bench.stores import STORES, main

    done = CliRunner().invoke(main, ["--rows", "40", "--dim", "4", "--repeats", "1"])
    assert done.exit_code == 0, done.output
    assert [name for name in STORES if f"| {name} |" not in done.output] == []
