"""Followers that are killed at random times, while rows change: the index equals the tables, and no change is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hopfuse import Index
from stores.postgres_tables import QUERIES, add_chunk, make_tables, state_of

#: In the full tier; HOPFUSE_KILLS gives another number.
KILLS = int(os.environ.get("HOPFUSE_KILLS", "1000"))


def change(connection: Any, rng: random.Random, at: int) -> None:
    """Change the tables by one transaction that leaves every edge and every fact with both its ends."""
    ids = [id for (id,) in connection.execute("SELECT id FROM chunks ORDER BY id").fetchall()]
    names = [name for (name,) in connection.execute("SELECT name FROM names ORDER BY name").fetchall()]
    kind = rng.choice(("add", "add", "update", "delete", "name", "mention", "state", "unstate", "reweigh", "forget"))
    with connection.transaction():
        if kind == "add" or len(ids) < 3:
            add_chunk(connection, 1000 + at, f"text {at} {rng.random()}")
            connection.execute("INSERT INTO mentions VALUES (%s, %s)", (1000 + at, rng.choice(names)))
        elif kind == "update":
            connection.execute("UPDATE chunks SET title = %s, year = %s WHERE id = %s", (f"t{at}", at, rng.choice(ids)))
        elif kind == "delete":
            gone = rng.choice(ids)
            connection.execute("DELETE FROM mentions WHERE chunk = %s", (gone,))
            connection.execute("DELETE FROM statements WHERE chunk = %s", (gone,))
            connection.execute("DELETE FROM chunks WHERE id = %s", (gone,))
        elif kind == "name":
            connection.execute("INSERT INTO names VALUES (%s, %s)", (f"name {at}", [f"alias {at}"]))
        elif kind == "mention":
            connection.execute(
                "INSERT INTO mentions VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (rng.choice(ids), rng.choice(names), rng.randint(1, 9)),
            )
        elif kind == "state":
            connection.execute(
                "INSERT INTO statements (head, relation, tail, chunk) VALUES (%s, %s, %s, %s)",
                (rng.choice(names), rng.choice(("knew", "met")), rng.choice(names), rng.choice(ids)),
            )
        elif kind == "unstate":
            connection.execute("DELETE FROM statements WHERE id = (SELECT max(id) FROM statements)")
        elif kind == "reweigh":
            connection.execute("UPDATE mentions SET weight = weight + 1 WHERE chunk = %s", (rng.choice(ids),))
        elif len(names) > 4:
            gone = rng.choice(names)
            connection.execute("DELETE FROM mentions WHERE entity = %s", (gone,))
            connection.execute("DELETE FROM statements WHERE %s IN (head, tail)", (gone,))
            connection.execute("DELETE FROM names WHERE name = %s", (gone,))


def follow_under_kills(url: str, connection: Any, index: Path, kills: int, seed: int) -> int:
    """Change the tables while followers are killed; return how many transactions there were."""
    rng = random.Random(seed)
    script = str(Path(__file__).with_name("kill_follower.py"))
    command = [sys.executable, script, url, str(index), str(kills), str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    count = 0
    while process.poll() is None:
        change(connection, rng, count)
        count += 1
        time.sleep(0.01)
    assert process.stdout is not None
    assert process.stderr is not None
    said, wrong = process.stdout.read(), process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert process.returncode == 0, wrong
    assert int(said) > kills // 10, "too few followers lived long enough to commit"
    return count


@pytest.mark.full
def test_an_index_whose_followers_are_killed_equals_the_tables(database, tmp_path):
    from hopfuse.stores.postgres import PostgresFollower, PostgresSource, followed

    url, connection = database
    make_tables(connection)
    source = PostgresSource(url, **QUERIES)
    index = tmp_path / "index"
    with followed(source, f"kills_{os.getpid()}", Index.build) as built:
        built.save(index)
    transactions = follow_under_kills(url, connection, index, KILLS, seed=KILLS)
    with PostgresFollower(index, url) as following:
        following.step()
        assert following.step() is None
        commits = following.seq
    assert state_of(Index.open(index, verify="full")) == state_of(Index.build(source))
    print(f"{KILLS} kills, {transactions} transactions, {commits} commits")
