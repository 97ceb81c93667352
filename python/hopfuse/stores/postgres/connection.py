"""Connections to PostgreSQL, and what its errors mean; nothing that is printed has a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ...errors import InputError, MissingExtraError, StoreError

#: SQLSTATEs by their first two characters: the connection, the server's resources, its shutdown, its own failure.
_UNAVAILABLE = ("08", "53", "57", "58", "XX")


def driver(name: str) -> Any:
    """Return a module of psycopg or ADBC.

    Raises
    ------
    MissingExtraError
    """
    try:
        return import_module(name)
    except ImportError:
        package = "psycopg" if name.startswith("psycopg") else "adbc-driver-postgresql"
        raise MissingExtraError(package, "postgres", "reading PostgreSQL") from None


def place_of(url: str) -> str:
    """Return where a server is, without user and password.

    Examples
    --------
    >>> place_of("postgresql://ada:secret@example.org:5433/news")
    'PostgreSQL at example.org:5433, database news'
    """
    psycopg = driver("psycopg")
    try:
        known = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise InputError(
            "the URL of PostgreSQL cannot be read; give postgresql://user@host:port/database, the password by "
            "PGPASSWORD "
            "or ~/.pgpass"
        ) from None
    host = ":".join(str(known[key]) for key in ("host", "port") if known.get(key))
    database = f", database {known['dbname']}" if known.get("dbname") else ""
    return f"PostgreSQL at {host or 'the default host'}{database}"


def connect(url: str) -> Any:
    """Open a connection of psycopg that commits each statement.

    Raises
    ------
    StoreError
        The server cannot be reached, or lets nobody in.
    """
    psycopg = driver("psycopg")
    place = place_of(url)
    try:
        return psycopg.connect(url, autocommit=True, application_name="hopfuse")
    except psycopg.Error as error:
        raise StoreError(f"{place} cannot be reached: {_first_line(error)}") from None


@contextmanager
def snapshot_connection(url: str) -> Iterator[Any]:
    """Open a connection of ADBC; all its queries see one state of the database (REPEATABLE READ)."""
    adbc = driver("adbc_driver_postgresql.dbapi")
    with database_errors(url):
        connection = adbc.connect(url)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection
        finally:
            connection.close()


@contextmanager
def database_errors(url: str, what: str = "") -> Iterator[None]:
    """Turn errors of both drivers into hopfuse's; ``what`` names the query that failed.

    Raises
    ------
    InputError
        The server understood, and refused: a query that is wrong, a right that is missing.
    StoreError
        The server cannot be reached, broke off, or has no room.
    """
    psycopg, manager = driver("psycopg"), driver("adbc_driver_manager")
    try:
        yield
    except (psycopg.Error, manager.Error) as error:
        code = getattr(error, "sqlstate", None)
        said = f"{what}: {_first_line(error)}" if what else _first_line(error)
        if not code or code.startswith(_UNAVAILABLE):
            raise StoreError(f"{place_of(url)} broke off: {said}; try again when it is there") from None
        raise InputError(f"{said}; change it, or the database") from None


def _first_line(error: BaseException) -> str:
    """Return what the server said, without the drivers' words around it."""
    text = str(error)
    diagnosis = getattr(error, "diag", None)
    if diagnosis is not None and diagnosis.message_primary:
        text = diagnosis.message_primary
    text = text.split("ERROR:")[-1].strip().split("\n")[0].strip()
    return text or type(error).__name__
