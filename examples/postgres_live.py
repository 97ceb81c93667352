"""Search tables of PostgreSQL as they change: build, follow, ask, add a row, ask, delete it, ask again.

    python examples/postgres_live.py postgresql://user@localhost/database

The server needs pgvector and wal_level = logical; the user may make a schema, a publication and a replication slot.
Needs: pip install 'hopfuse[demo,postgres]'
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import hopfuse as hf
import psycopg
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.extract import EntityLinker
from hopfuse.recipes import HybridRRF
from hopfuse.stores.postgres import PostgresFollower, PostgresSource, drop_slot, followed

DIM = 64
TABLES = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA hopfuse_example;
CREATE TABLE hopfuse_example.chunks (id text PRIMARY KEY, body text NOT NULL, embedding vector({DIM}) NOT NULL);
CREATE TABLE hopfuse_example.names (name text PRIMARY KEY);
CREATE TABLE hopfuse_example.mentions (chunk text REFERENCES hopfuse_example.chunks ON DELETE CASCADE,
    name text REFERENCES hopfuse_example.names, PRIMARY KEY (chunk, name));
"""
TEXTS = {
    "notes": ("Ada Lovelace wrote notes on the Analytical Engine.", ["Ada Lovelace", "Analytical Engine"]),
    "engine": ("Charles Babbage designed the Analytical Engine.", ["Charles Babbage", "Analytical Engine"]),
    "father": ("Lord Byron was the father of Ada Lovelace.", ["Lord Byron", "Ada Lovelace"]),
}
LATE = ("bernoulli", "The notes of Ada Lovelace compute Bernoulli numbers.", ["Ada Lovelace"])
QUESTION = "Which Bernoulli numbers were computed?"


def main(url: str, folder: Path, say: Callable[[str], None] = print) -> None:
    """Run the example; ``folder`` is where the index is kept."""
    encoder = WordLlamaEncoder(DIM)
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(TABLES)
        try:
            for id, (text, names) in TEXTS.items():
                add(database, encoder, id, text, names)
            run(url, folder, database, encoder, say)
        finally:
            database.execute("DROP SCHEMA hopfuse_example CASCADE")


def run(
    url: str, folder: Path, database: psycopg.Connection, encoder: WordLlamaEncoder, say: Callable[[str], None]
) -> None:
    """Build an index, follow the tables, and ask while they change."""
    source = PostgresSource(
        url,
        passages="SELECT id, body AS text, embedding FROM hopfuse_example.chunks ORDER BY id",
        entities="SELECT name FROM hopfuse_example.names ORDER BY name",
        edges="SELECT chunk AS src_passage, name AS dst_entity, 'context' AS type FROM hopfuse_example.mentions",
    )
    with followed(source, "hopfuse_example", lambda tables: hf.Index.build(tables, metric="cosine")) as index:
        index.save(folder)
    say(f"built: {index}")

    stop = threading.Event()
    with PostgresFollower(folder, url) as follower:
        thread = threading.Thread(target=follower.run, args=(stop,))
        thread.start()
        try:
            reader = hf.Index.open(folder, live=True)  # in any process: a server, say
            recipe = reader.follow(lambda index: HybridRRF(index, matcher=EntityLinker(index)))

            def ask() -> list[str]:
                vectors = encoder.encode_queries([QUESTION])
                return [str(hit.id) for hit in recipe.search([QUESTION], vectors=vectors, k=2)[0]]

            say(f"asked: {ask()}")
            id, text, names = LATE
            add(database, encoder, id, text, names)
            say(f"added, and found after {wait(reader, lambda ids: id in ids):.2f} s: {ask()}")
            database.execute("DELETE FROM hopfuse_example.chunks WHERE id = %s", (id,))
            say(f"deleted, and gone after {wait(reader, lambda ids: id not in ids):.2f} s: {ask()}")
        finally:
            stop.set()
            thread.join()
    say(f"dropped: {drop_slot(folder, url)}")


def add(database: psycopg.Connection, encoder: WordLlamaEncoder, id: str, text: str, names: list[str]) -> None:
    """Add a chunk, its vector, and the names that it mentions."""
    vector = str(encoder.encode_passages([text])[0].tolist())
    with database.transaction():
        database.execute("INSERT INTO hopfuse_example.chunks VALUES (%s, %s, %s::vector)", (id, text, vector))
        for name in names:
            database.execute("INSERT INTO hopfuse_example.names VALUES (%s) ON CONFLICT DO NOTHING", (name,))
            database.execute("INSERT INTO hopfuse_example.mentions VALUES (%s, %s)", (id, name))


def wait(reader: hf.LiveIndex[hf.Index], until: Callable[[set[object]], bool], most: float = 60.0) -> float:
    """Return after how many seconds the passages of the index are as they should be."""
    begin = time.monotonic()
    while not until(set(reader.refresh().passage_ids)):
        if time.monotonic() > begin + most:
            raise TimeoutError(f"the index did not follow within {most} s")
        time.sleep(0.01)
    return time.monotonic() - begin


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1], Path(directory) / "index")
