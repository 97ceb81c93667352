"""Search PostgreSQL tables over HTTP as they change: build, follow, serve, ask, add a row, ask, delete it, ask again.

    python examples/postgres_live.py postgresql://user@localhost/database

The server needs pgvector and wal_level = logical; the user may create a schema, a publication and a replication slot.
Needs: pip install '.[client,demo,postgres,serve]'
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import hopfuse as hf
import psycopg
from hopfuse.client import Client
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.errors import EndpointError
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
SECONDS = 60.0


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
    """Build an index, follow the tables, serve the index, and ask while the tables change."""
    source = PostgresSource(
        url,
        passages="SELECT id, body AS text, embedding FROM hopfuse_example.chunks ORDER BY id",
        entities="SELECT name FROM hopfuse_example.names ORDER BY name",
        edges="SELECT chunk AS src_passage, name AS dst_entity, 'context' AS type FROM hopfuse_example.mentions",
    )
    # The index names its encoder, so that the server can encode questions.
    with followed(
        source, "hopfuse_example", lambda rows: hf.Index.build(rows, metric="cosine", encoder=encoder)
    ) as index:
        index.save(folder)
    say(f"built: {index}")
    try:
        with following(folder, url), serving(folder) as client:

            def ask() -> list[str]:
                return [str(hit.id) for hit in client.search([QUESTION], k=2)[0]]

            say(f"asked: {ask()}")
            id, text, names = LATE
            add(database, encoder, id, text, names)
            say(f"added, and found after {wait(lambda: id in ask()):.2f} s: {ask()}")
            database.execute("DELETE FROM hopfuse_example.chunks WHERE id = %s", (id,))
            say(f"deleted, and gone after {wait(lambda: id not in ask()):.2f} s: {ask()}")
    finally:
        say(f"dropped: {drop_slot(folder, url)}")


@contextmanager
def following(folder: Path, url: str) -> Iterator[None]:
    """Follow the tables on a thread; ``hopfuse follow`` does so in a process."""
    stop = threading.Event()
    with PostgresFollower(folder, url) as follower:
        thread = threading.Thread(target=follower.run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextmanager
def serving(folder: Path) -> Iterator[Client]:
    """Run ``hopfuse serve`` on a free port of loopback, and yield a client once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "hopfuse", "serve", str(folder), "--port", str(port)])
    try:
        with Client(f"http://127.0.0.1:{port}") as client:

            def answers() -> bool:
                if server.poll() is not None:
                    raise RuntimeError(f"hopfuse serve ended with exit code {server.returncode}")
                try:
                    return bool(client.indexes())
                except EndpointError:  # not yet
                    return False

            wait(answers)
            yield client
    finally:
        server.terminate()
        server.wait()


def add(database: psycopg.Connection, encoder: WordLlamaEncoder, id: str, text: str, names: list[str]) -> None:
    """Add a chunk, its vector, and the names that it mentions."""
    vector = str(encoder.encode_passages([text])[0].tolist())
    with database.transaction():
        database.execute("INSERT INTO hopfuse_example.chunks VALUES (%s, %s, %s::vector)", (id, text, vector))
        for name in names:
            database.execute("INSERT INTO hopfuse_example.names VALUES (%s) ON CONFLICT DO NOTHING", (name,))
            database.execute("INSERT INTO hopfuse_example.mentions VALUES (%s, %s)", (id, name))


def wait(until: Callable[[], bool]) -> float:
    """Return the seconds until a condition holds."""
    begin = time.monotonic()
    while not until():
        if time.monotonic() > begin + SECONDS:
            raise TimeoutError(f"nothing changed within {SECONDS} s")
        time.sleep(0.02)
    return time.monotonic() - begin


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1], Path(directory) / "index")
