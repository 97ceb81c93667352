"""Readers over the passages of stores: the index is that of the same rows from files, read in the same way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse.errors import InputError
from hopfuse.index import EncoderInfo
from hopfuse.stores import ArrowSource, open_source
from hopfuse.stores.sqlite import SQLiteSource
from refusals import refused

pa = pytest.importorskip("pyarrow")

IDS = [1, 2, 3, 4, 5]
TEXTS = [
    "Ada Lovelace wrote notes in London.",
    "Charles Babbage built an engine in London.",
    "Her notes describe the engine.",
    "Engines are noted for their noise.",
    "Ada met Babbage.",
]
DOCUMENTS = ["life", "engine", "life", "engine", "life"]
POSITIONS = [2, 1, 3, 2, 1]
VECTORS = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
QUERY = "SELECT id, text, document, position, v AS vector FROM chunks ORDER BY id"

Place = tuple[str, dict[str, list[str]]]


def of_files(ids: list[Any], **options: Any) -> hf.Index:
    """The index of the rows as mappings; their places are metadata, too, as in a store."""
    columns = zip(ids, TEXTS, DOCUMENTS, POSITIONS, strict=True)
    rows = [
        {"id": id, "text": text, "document": document, "position": at, "metadata": {"position": at}}
        for id, text, document, at in columns
    ]
    return hf.Index.build(rows, vectors=VECTORS, **options)


def in_sqlite(folder: Path) -> Place:
    with closing(sqlite3.connect(folder / "notes.db")) as db, db:
        db.execute("CREATE TABLE chunks (id INTEGER, text TEXT, document TEXT, position INTEGER, v BLOB)")
        blobs = [vector.tobytes() for vector in VECTORS]
        rows = zip(IDS, TEXTS, DOCUMENTS, POSITIONS, blobs, strict=True)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", rows)
    return f"sqlite:{folder / 'notes.db'}", {"passages": [QUERY]}


def in_duckdb(folder: Path) -> Place:
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(folder / "notes.duckdb"))) as db:
        db.execute("CREATE TABLE chunks (id INTEGER, text TEXT, document TEXT, position INTEGER, v FLOAT[4])")
        rows = zip(IDS, TEXTS, DOCUMENTS, POSITIONS, VECTORS.tolist(), strict=True)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", list(rows))
    return f"duckdb:{folder / 'notes.duckdb'}", {"passages": [QUERY]}


def in_lancedb(folder: Path) -> Place:
    lancedb = pytest.importorskip("lancedb")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), 4)
    columns = {"id": IDS, "text": TEXTS, "document": DOCUMENTS, "position": POSITIONS, "vector": vectors}
    lancedb.connect(str(folder / "lance")).create_table("passages", pa.table(columns))
    return f"lancedb:{folder / 'lance'}", {}


def in_postgres(database: Any) -> Place:
    url, connection = database
    connection.execute("CREATE TABLE chunks (id int PRIMARY KEY, text text, document text, position int, v vector(4))")
    with connection.cursor() as cursor:
        rows = zip(IDS, TEXTS, DOCUMENTS, POSITIONS, map(str, VECTORS.tolist()), strict=True)
        cursor.executemany("INSERT INTO chunks VALUES (%s, %s, %s, %s, %s::vector)", list(rows))
    return url, {"passages": [QUERY]}


@pytest.mark.parametrize("store", [in_sqlite, in_duckdb, in_lancedb, "postgresql"])
@pytest.mark.parametrize("reader", ["words", ["spacy", "words"]])
def test_a_reader_of_a_store_finds_what_it_finds_in_files(
    store: Callable[[Path], Place] | str, reader: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "spacy" in reader:
        pytest.importorskip("spacy")
    place, queries = in_postgres(request.getfixturevalue("database")) if isinstance(store, str) else store(tmp_path)
    found = hf.Index.build(open_source(place, queries), reader=reader)
    assert_same_files(found, of_files(IDS, reader=reader), tmp_path)
    assert {"word", "sequence"} < set(found.graph.edge_type_names) or reader == "words"


def assert_same_files(found: hf.Index, expected: hf.Index, folder: Path) -> None:
    written = []
    for name, index in (("found", found), ("expected", expected)):
        index.save(folder / name)
        written.append((folder / name / "generation-000000000001.hopfuse").read_bytes())
    assert written[0] == written[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_reader_of_collections_finds_what_it_finds_in_files(tmp_path: Path) -> None:
    chromadb, qdrant = pytest.importorskip("chromadb"), pytest.importorskip("qdrant_client")
    rows = [{"id": str(id), "text": text} for id, text in zip(IDS, TEXTS, strict=True)]
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(path=str(tmp_path / "chroma"), settings=settings)
    client.create_collection("chunks").add(ids=[row["id"] for row in rows], documents=TEXTS, embeddings=VECTORS)
    found = hf.Index.build(open_source(f"chroma:{tmp_path / 'chroma'}", {"passages": ["chunks"]}), reader="words")
    assert_same_files(found, hf.Index.build(rows, vectors=VECTORS, reader="words"), tmp_path / "c")
    with closing(qdrant.QdrantClient(path=str(tmp_path / "qdrant"))) as database:
        params = qdrant.models.VectorParams(size=4, distance="Dot")
        database.create_collection("chunks", vectors_config=params)
        points = [
            qdrant.models.PointStruct(id=id, vector=vector, payload={"text": text})
            for id, text, vector in zip(IDS, TEXTS, VECTORS.tolist(), strict=True)
        ]
        database.upsert("chunks", points)
    found = hf.Index.build(open_source(f"qdrant:{tmp_path / 'qdrant'}", {"passages": ["chunks"]}), reader="words")
    plain = [{"id": id, "text": text} for id, text in zip(IDS, TEXTS, strict=True)]
    assert_same_files(found, hf.Index.build(plain, vectors=VECTORS, reader="words"), tmp_path / "q")


def test_a_reader_makes_its_own_tables(tmp_path: Path) -> None:
    passages = pa.table({"id": IDS, "text": TEXTS})
    for name, table in (
        ("entities", pa.table({"name": ["Ada"]})),
        ("edges", [pa.table({"src_passage": [1], "dst_passage": [2]})]),
    ):
        with refused(InputError, "conflict", name):
            hf.Index.build(ArrowSource(passages=passages, **{name: table}), reader="words")
    with refused(InputError, "conflict", "vectors"):
        hf.Index.build(ArrowSource(passages=passages), reader="words", vectors=VECTORS)


def test_positions_that_are_missing_or_repeated_keep_the_order_of_the_rows() -> None:
    passages = pa.table(
        {
            "id": ["a", "b", "c", "d"],
            "text": ["one", "two", "three", "four"],
            "document": ["x"] * 4,
            "metadata": [{"position": at} for at in (None, 2, 1, 2)],
        }
    )
    index = hf.Index.build(ArrowSource(passages=passages), reader="words")
    src, dst, _, kind = index.graph.edges()
    sequence = index.graph.edge_type_names.index("sequence")
    pairs = {frozenset((int(a), int(b))) for a, b, of in zip(src, dst, kind, strict=True) if of == sequence}
    assert pairs == {frozenset((2, 1)), frozenset((1, 3)), frozenset((3, 0))}


def test_an_encoder_of_a_reader_over_a_store_makes_what_the_store_lacks(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    pytest.importorskip("wordllama")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), 4)
    columns = pa.table({"id": IDS, "text": TEXTS})
    stored = ArrowSource(passages=columns.append_column("vector", vectors))
    index = hf.Index.build(stored, reader="words", encoder=EncoderInfo("letters", 4, False))
    assert (index.dim, index.encoder.name) == (4, "letters")
    assert np.array_equal(index.vectors, VECTORS)
    index = hf.Index.build(stored, reader="spacy", entity_vectors=hf.encoders.open_encoder("wordllama"), synonyms=0.9)
    assert (index.dim, index.info()["entity_dim"], index.encoder) == (4, 256, None)
    index = hf.Index.build(ArrowSource(passages=columns), reader="spacy", encoder="wordllama", metric="cosine")
    assert (index.dim, index.info()["entity_dim"], index.encoder.name) == (256, 256, "wordllama")


def test_the_program_names_the_encoder_of_a_stores_vectors(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    encoder = hf.encoders.WordLlamaEncoder(64)
    with closing(sqlite3.connect(tmp_path / "notes.db")) as db, db:
        db.execute("CREATE TABLE chunks (id INTEGER, text TEXT, v BLOB)")
        vectors = np.asarray(encoder.encode_passages(TEXTS), np.float32)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?)", zip(IDS, TEXTS, map(bytes, vectors), strict=True))
    given = ("build", "--from", f"sqlite:{tmp_path / 'notes.db'}", "--passages")
    query = "SELECT id, text, v AS vector FROM chunks ORDER BY id"
    for name, reader in (("plain", ()), ("words", ("--reader", "words"))):
        out = tmp_path / name
        hopfuse(*given, query, *reader, "--vectors-by", "wordllama:64", "--out", out)
        index = hf.Index.open(out)
        assert (index.dim, index.encoder.name) == (64, encoder.name)
        assert np.array_equal(index.vectors, vectors)
        assert hopfuse("search", out, TEXTS[1], "-k", "1").stdout.startswith("1. ")
        again = (*reader, "--out", tmp_path / "again")
        assert refused_command(*given, query, *again, "--encoder", "wordllama:64") == about("unused", "encoder")
        assert refused_command(*given, query, *again, "--vectors-by", "wordllama:128") == about(
            "shape", "vectors_by", given=128, allowed=64
        )
        assert refused_command(*given, "SELECT id, text FROM chunks", *again, "--vectors-by", "wordllama:64") == about(
            "unused", "vectors_by"
        )


def test_queries_are_a_mapping_of_texts(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "notes.db").close()
    with refused(InputError, "type", "queries", given="str"):
        SQLiteSource(tmp_path / "notes.db", "SELECT 1")
    with refused(InputError, "type", "passages", given="int"):
        SQLiteSource(tmp_path / "notes.db", {"passages": 1})


def test_the_program_reads_a_store(tmp_path: Path) -> None:
    place, queries = in_sqlite(tmp_path)
    given = ("build", "--from", place, "--passages", queries["passages"][0], "--out", tmp_path / "index")
    said = hopfuse(*given, "--reader", "words").stderr
    assert "3 pairs of passages that follow each other" in said
    index = hf.Index.open(tmp_path / "index")
    assert (index.dim, index.words.stemmer) == (4, "english")
    again = (*given, "--overwrite")
    for options, error in (
        (("--reader", "words", "--edges", "SELECT 1"), about("conflict", "edges")),
        (("--reader", "words", "--encoder", "wordllama"), about("unused", "encoder")),
        (("--model", "x"), about("unused", "model")),
        (("--reader", "words", "--synonyms", "0.9"), about("unused", "synonyms")),
        (("--reader", "words", "--conflicts", tmp_path / "c.jsonl"), about("unused", "conflicts")),
        (("--slot", "x"), about("unsupported", "slot")),
    ):
        assert refused_command(*again, *options) == error
