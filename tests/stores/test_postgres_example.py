"""examples/postgres_live.py on a real PostgreSQL and a real ``hopfuse serve``: an added row is found, a deleted one is
not, and the example cleans up.
"""

from __future__ import annotations

import pytest


def test_the_example_asks_a_server_that_follows_the_tables(database, tmp_path):
    for package in ("wordllama", "httpx", "uvicorn", "starlette", "ahocorasick"):
        pytest.importorskip(package, reason=f"the example needs {package}")
    from examples.postgres_live import main

    url, connection = database
    said: list[str] = []
    main(url, tmp_path / "index", said.append)
    built, asked, added, deleted, dropped = said
    assert "passages=3, entities=4" in built
    assert "bernoulli" not in asked
    assert "'bernoulli'" in added
    assert "bernoulli" not in deleted
    assert dropped == "dropped: hopfuse_example"
    print(*said, sep="\n")
    assert connection.execute(
        "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'hopfuse_example'"
    ).fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'hopfuse_example'").fetchone() == (0,)
