"""An index of chunks and embeddings in PostgreSQL, whose graph readers make: it follows the rows, whatever they are."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse import Index
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, WordReader
from hopfuse.index import LeftOut
from hopfuse.stores.postgres import PostgresFollower, PostgresSource, followed
from refusals import refused

QUERY = "SELECT id, body AS text, embedding, file AS document, line AS position, year FROM chunks ORDER BY id"
TABLE = "CREATE TABLE chunks (id int PRIMARY KEY, body text, embedding vector(3), file text, line int, year int)"
VOCABULARY = ["ada", "wrote", "notes", "engine", "engines", "babbage", "built", "sea", "seas", "river", "london"]
KILLS = int(os.environ.get("HOPFUSE_KILLS", "300"))


class Names:
    """A reader of facts without a model: capital words are names, and the first two of a passage know each other."""

    language = "english"
    skip_failed = 10.0

    def read(self, passages: Any, *, progress: Any = None, skips: Any = None) -> list[Extraction]:
        found = []
        for row in passages:
            names = tuple(word.strip(".") for word in row["text"].split() if word[:1].isupper())
            facts = ((names[0], "knows", names[1]),) if len(names) > 1 and names[0] != names[1] else ()
            failure = "it cannot be read" if "unreadable" in row["text"] else None
            about = {name: row.get(name) for name in ("document", "position", "language")}
            read = ((), ()) if failure else (names, facts)
            found.append(Extraction(row["id"], row.get("title") or "", row["text"], *read, **about, failure=failure))
        return found


def add(
    connection: Any, id: int, text: str | None, embedding: Any = (1, 2, 3), file: Any = None, line: Any = None
) -> None:
    vector = None if embedding is None else str(list(embedding))
    connection.execute(
        "INSERT INTO chunks VALUES (%s, %s, %s::vector, %s, %s, %s)", (id, text, vector, file, line, 1800 + id)
    )


def fill(connection: Any, rows: int = 8) -> None:
    connection.execute(TABLE)
    for id in range(rows):
        text = f"Ada wrote note {id} to Babbage about engines."
        add(connection, id, text, (id, 1, 0), f"file {id % 2}", rows - id)


def build(url: str, folder: Path, slot: str, *, reader: Any = "words", **options: Any) -> Path:
    make = lambda source: Index.build(source, reader=reader, **options)  # noqa: E731
    with followed(PostgresSource(url, passages=QUERY), slot, make) as index:
        index.save(folder)
    return folder


def read_state(index: Index) -> dict[str, Any]:
    """What an index has, by ids and by the keys of words and names."""
    count = index.num_passages
    names = list(index.entity_names)
    first = len(names) if index.words is None else index.words.first
    keys = [name.casefold() for name in names[:first]]
    if index.words is not None:
        keys += WordReader.like(index.words).keys(names[first:])
    nodes = [("passage", id) for id in index.passage_ids]
    nodes += [("name" if at < first else "word", key) for at, key in enumerate(keys)]
    src, dst, weight, kind = index.graph.edges()
    types = index.graph.edge_type_names
    edges = Counter(
        {
            (*sorted([nodes[a], nodes[b]], key=repr), types[of]): float(heavy)
            for a, b, heavy, of in zip(src.tolist(), dst.tolist(), weight.tolist(), kind.tolist(), strict=True)
        }
    )
    found: dict[str, Any] = {"edges": dict(edges), "count": count, "entities": sorted(nodes[count:])}
    rows = zip(index.passage_ids, index.texts, index.documents, strict=True)
    found["passages"] = {id: (text, document, index.metadata.row(at)) for at, (id, text, document) in enumerate(rows)}
    if index.vectors is not None:
        found["vectors"] = dict(zip(index.passage_ids, index.vectors.tolist(), strict=True))
    if index.facts is not None:
        facts, ids = index.facts, list(index.passage_ids)
        found["facts"] = sorted(
            (keys[h], facts.relations[r], keys[t], ids[p])
            for f, (h, r, t) in enumerate(facts.rows.tolist())
            for p in np.asarray(facts.passages)[facts.indptr[f] : facts.indptr[f + 1]].tolist()
        )
    return found


def assert_equal(folder: Path, url: str, *, reader: Any = "words") -> None:
    """The index equals one that is built of the rows as they are, without those that no index can hold."""
    expected = Index.build(PostgresSource(url, passages=QUERY), reader=reader, left_out=LeftOut(100))
    assert read_state(Index.open(folder, verify="full")) == read_state(expected)


STEPS = [
    "INSERT INTO chunks VALUES (20, 'Lovelace knew engines', '[1,2,3]', 'file 1', 50, NULL)",
    "UPDATE chunks SET body = 'Byron wrote verses' WHERE id = 3",
    "UPDATE chunks SET line = line + 100 WHERE id = 2",
    "UPDATE chunks SET file = 'file 2' WHERE id IN (1, 4)",
    "DELETE FROM chunks WHERE id = 5",
    "UPDATE chunks SET embedding = NULL WHERE id IN (6, 7)",
    "INSERT INTO chunks VALUES (21, NULL, '[1,2,3]', 'file 1', 51, NULL), (22, 'Sea', '[1,2,3]', NULL, NULL, 7)",
    "UPDATE chunks SET embedding = '[4,4,4]' WHERE id = 7",
    "UPDATE chunks SET id = 30 WHERE id = 0; UPDATE chunks SET body = 'A sea of verses' WHERE id = 21",
    "TRUNCATE chunks; INSERT INTO chunks SELECT i, 'Anew ' || i, '[1,1,1]', 'f', i, i FROM generate_series(1, 5) i",
    "INSERT INTO chunks VALUES (9, 'Anew Ada met Byron', NULL, 'f', 3, 1); DELETE FROM chunks WHERE id = 2",
    "DELETE FROM chunks",
    "INSERT INTO chunks VALUES (50, 'From nothing', '[1,2,3]', NULL, NULL, 1)",
]


@pytest.mark.parametrize("reader", ["words", Names(), ["words", Names()]], ids=["words", "names", "both"])
def test_readers_follow_each_change_of_rows(database, tmp_path, reader):
    url, connection = database
    fill(connection)
    index = build(url, tmp_path / "index", f"readers_{os.getpid()}", reader=reader)
    facts = None if reader == "words" else Names()
    with PostgresFollower(index, url, reader=facts) as following:
        assert following.step() is None
        for statement in STEPS:
            connection.execute(statement)
            assert following.step() is not None, statement
            assert_equal(index, url, reader=reader)
        assert following.failures == []
        assert following.step() is None


def test_what_a_reader_cannot_read_is_listed_until_it_changes(database, tmp_path):
    url, connection = database
    fill(connection)
    index = build(url, tmp_path / "index", f"unread_{os.getpid()}", reader=Names())
    with PostgresFollower(index, url, reader=Names()) as following:
        connection.execute("UPDATE chunks SET body = 'Ada is unreadable by Babbage' WHERE id IN (1, 2)")
        following.step()
        lacking = [(one.table, one.key, one.lacks, one.reason) for one in following.failures]
        assert lacking == [("passages", id, "facts", "it cannot be read") for id in (1, 2)]
        assert 1 in list(Index.open(index).passage_ids)
        connection.execute("UPDATE chunks SET body = 'Ada knows Babbage' WHERE id = 1; DELETE FROM chunks WHERE id = 2")
        following.step()
        assert following.failures == []
    assert_equal(index, url, reader=Names())
    with refused(InputError, "missing", "reader"):
        PostgresFollower(index, url)
    plain = build(url, tmp_path / "words", f"words_{os.getpid()}")
    with refused(InputError, "unused", "reader"):
        PostgresFollower(plain, url, reader=Names())


def test_the_list_of_failures_forgets_what_the_table_forgets(database, tmp_path):
    url, connection = database
    fill(connection)
    index = build(url, tmp_path / "index", f"forgets_{os.getpid()}")
    secret = "Zyxwvut"
    with PostgresFollower(index, url) as following:
        add(connection, 60, f"{secret} has no vector.", None)
        add(connection, 61, f"{secret} has one.")
        following.step()
        assert [one.key for one in following.failures] == [60]
        assert any(secret.lower() in name for name in Index.open(index).entity_names)
        connection.execute("DELETE FROM chunks WHERE id >= 60")
        following.step()
        assert following.failures == []
    hopfuse("compact", index)
    assert not [path.name for path in index.iterdir() if b"has no vector" in path.read_bytes()]


def test_the_program_follows_with_readers_and_lists_what_is_lacking(database, tmp_path):
    url, connection = database
    fill(connection, rows=30)
    add(connection, 4000, "No vector yet.", None)
    index, slot = tmp_path / "index", f"program_{os.getpid()}"
    said = hopfuse(
        "build", "--from", url, "--passages", QUERY, "--reader", "words", "--slot", slot, "--out", index
    ).stderr
    assert "31 passages read, without 1 that failed" in said
    assert json.loads(hopfuse("info", index, "--json").stdout)["failures"][0]["key"] == 4000
    assert "passages 4000: " in hopfuse("info", index).stdout  # an id, not a count
    connection.execute(
        "UPDATE chunks SET embedding = '[1,1,1]' WHERE id = 4000; UPDATE chunks SET body = NULL WHERE id = 3"
    )
    said = hopfuse("follow", index, "--from", url, "--once").stderr
    assert "The index is at seq 1" in said
    assert "passages 3 is left out: 'text' is missing; it must be a string" in " ".join(said.split())
    assert_equal(index, url)
    assert "passages 3" in hopfuse("info", index).stdout
    connection.execute("UPDATE chunks SET body = NULL WHERE id < 8")
    error = refused_command("follow", index, "--from", url, "--once", "--skip-failed", "5")
    assert error == about("limit", "skip_failed", given=8, allowed=5.0)
    error = refused_command("follow", index, "--from", url, "--once", "--reader", "spacy")
    assert error == about("unused", "reader")
    other = ("build", "--from", url, "--passages", QUERY, "--slot", "x", "--out", tmp_path / "x", "--reader", "spacy")
    error = refused_command(*other, "--encoder", "wordllama", "--synonyms", "0.9")
    assert error == about("conflict", "synonyms")


def change(connection: Any, rng: random.Random, at: int) -> None:
    """Change the rows by one transaction; some have no vector or no text for a while."""
    ids = [id for (id,) in connection.execute("SELECT id FROM chunks ORDER BY id").fetchall()]
    kind = rng.choice(("add", "add", "text", "move", "delete", "break", "mend"))
    words = " ".join(rng.choices(VOCABULARY, k=4))
    with connection.transaction():
        if kind == "add" or len(ids) < 4:
            vector = rng.choice([(1, at, 0), (1, at, 0), None])
            add(connection, 1000 + at, words, vector, *rng.choice([("f", at), ("g", at), (None, None)]))
        elif kind == "text":
            connection.execute("UPDATE chunks SET body = %s WHERE id = %s", (words, rng.choice(ids)))
        elif kind == "move":  # to where no other row is: equal positions are ordered as rows are, which differs
            place = 1_000_000 + at
            connection.execute("UPDATE chunks SET line = %s, file = 'f' WHERE id = %s", (place, rng.choice(ids)))
        elif kind == "delete":
            connection.execute("DELETE FROM chunks WHERE id = %s", (rng.choice(ids),))
        elif kind == "break":
            connection.execute("UPDATE chunks SET embedding = NULL WHERE id = %s", (rng.choice(ids),))
        else:
            connection.execute("UPDATE chunks SET embedding = '[1,2,3]' WHERE embedding IS NULL")


def follow_under_kills(url: str, connection: Any, index: Path, kills: int, seed: int) -> int:
    """Change the rows while followers are killed; return how many transactions there were."""
    rng, count = random.Random(seed), 0
    script = str(Path(__file__).with_name("kill_follower.py"))
    command = [sys.executable, script, url, str(index), str(kills), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            change(connection, rng, count)
            count += 1
            time.sleep(0.01)
        said, wrong = process.communicate()
    assert process.returncode == 0, wrong
    assert int(said) > kills // 10, "too few followers lived long enough to commit"
    return count


@pytest.mark.parametrize("kills", [12, pytest.param(KILLS, marks=pytest.mark.full)])
def test_killed_followers_with_a_reader_lose_nothing(database, tmp_path, kills):
    url, connection = database
    fill(connection)
    index = build(url, tmp_path / "index", f"reading_kills_{os.getpid()}")
    transactions = follow_under_kills(url, connection, index, kills, seed=kills)
    with PostgresFollower(index, url) as following:
        following.step()
        assert following.step() is None
        lacking = {one.key for one in following.failures}
    (expected,) = connection.execute("SELECT array_agg(id) FROM chunks WHERE embedding IS NULL").fetchone()
    assert lacking == set(expected or ())
    assert transactions > 0
    assert_equal(index, url)
