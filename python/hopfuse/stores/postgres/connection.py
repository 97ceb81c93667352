"""Connections to PostgreSQL, and its errors as hopfuse's. No message contains a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._validation import import_extra
from ...errors import HopfuseError, InputError, StoreError

#: SQLSTATE classes and codes of conditions that pass without a change of the query or the database (PostgreSQL's
#: appendix "Error Codes"): connection, rollback, resources, operator intervention, system; object in use, lock.
_TRANSIENT = ("08", "40", "53", "57", "58", "55006", "55P03")
#: Those that do not pass, and that no query causes: the database was dropped, a file is missing, internal errors.
_PERMANENT = ("57P04", "58P01", "XX")


class TransientError(StoreError):
    """The server cannot be reached or cannot answer now; the same request may succeed later."""


def driver(name: str) -> Any:
    """Return a module of psycopg or ADBC.

    Raises
    ------
    MissingExtraError
    """
    return import_extra(name, "reading PostgreSQL")


def place_of(url: str) -> str:
    """Return the server and the database of a URL, without user and password.

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
            "syntax",
            "url",
            "{field} cannot be parsed; give postgresql://user@host:port/database, and the password in PGPASSWORD or "
            "~/.pgpass",
        ) from None
    host = ":".join(str(known[key]) for key in ("host", "port") if known.get(key))
    database = f", database {known['dbname']}" if known.get("dbname") else ""
    return f"PostgreSQL at {host or 'the default host'}{database}"


def connect(url: str) -> Any:
    """Open a psycopg connection in autocommit mode.

    Raises
    ------
    TransientError
        The server cannot be reached or refuses the connection. libpq gives no SQLSTATE for a failed connection attempt.
    """
    psycopg = driver("psycopg")
    place = place_of(url)
    try:
        return psycopg.connect(url, autocommit=True, application_name="hopfuse")
    except psycopg.Error as error:
        raise TransientError(
            "connection", None, "{place} cannot be reached: {error}", place=place, error=_first_line(error)
        ) from None


@contextmanager
def snapshot_connection(url: str) -> Iterator[Any]:
    """Open an ADBC connection whose queries all see one state of the database (REPEATABLE READ)."""
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
def database_errors(url: str, what: str = "", field: str | None = None) -> Iterator[None]:
    """Raise the errors of both drivers as hopfuse's; ``what`` stands before the message, and ``field`` is its argument.

    Raises
    ------
    InputError
        The query is wrong, or a permission is missing.
    TransientError
        The connection is lost, or the server has no room or is shutting down.
    StoreError
        The server failed.
    """
    psycopg, adbc = driver("psycopg"), driver("adbc_driver_manager")
    try:
        yield
    except (psycopg.Error, adbc.Error) as error:
        known = _as_hopfuse(error, (psycopg.OperationalError, adbc.OperationalError), url)
        raise (known.at(what, field) if what else known) from None


def _as_hopfuse(error: Any, operational: tuple[type[Exception], ...], url: str) -> HopfuseError:
    """Return the error for a driver's: by its SQLSTATE or, if the server sent none, by its class (PEP 249)."""
    code, said = error.sqlstate, _first_line(error)
    if code is not None and code.startswith(_PERMANENT):
        return StoreError(
            "failed",
            None,
            "{place} failed: {error} (SQLSTATE {sqlstate}); see the server's log",
            place=place_of(url),
            error=said,
            sqlstate=code,
        )
    if code.startswith(_TRANSIENT) if code is not None else isinstance(error, operational):
        return unavailable(url, said)
    return wrong_query(said)


def unavailable(url: str, said: str) -> TransientError:
    """Return the error for a server that cannot answer now, with what the driver said."""
    return TransientError(
        "connection", None, "{place} is unavailable: {error}; try again later", place=place_of(url), error=said
    )


def wrong_query(said: str) -> InputError:
    """Return the error for a query that the server cannot run, with what it said."""
    return InputError("failed", None, "{error}; change the query or the database", error=said)


def is_connected(connection: Any) -> bool:
    """Return whether an ADBC connection still reaches the server, by rolling its transaction back."""
    adbc = driver("adbc_driver_manager")
    try:
        connection.rollback()
    except adbc.OperationalError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    """Return the server's message without the drivers' words around it."""
    text = str(error)
    diagnosis = getattr(error, "diag", None)
    if diagnosis is not None and diagnosis.message_primary:
        text = diagnosis.message_primary
    text = text.split("ERROR:")[-1].strip().split("\n")[0].strip()
    return text or type(error).__name__
