"""A PostgreSQL server for the session, and a database for each test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from stores.postgres_server import connected, new_database, start_server, stop

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="hopfuse-postgres-") as folder:  # a folder that the server's user can enter
        os.chmod(folder, 0o755)
        started = start_server(Path(folder) / "data")
        yield started
        stop(started, "immediate")


@pytest.fixture
def database(server: Any) -> Iterator[tuple[str, Any]]:
    """The URL of a database of its own, and a connection to it that commits each statement."""
    name = f"test_{next(_NUMBERS)}"
    url = new_database(server, name)
    with connected(server, name) as connection:
        yield url, connection
    with connected(server) as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active",
            (name,),
        )
