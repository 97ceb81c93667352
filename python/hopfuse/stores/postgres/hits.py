"""Hits of questions, written into a table by COPY in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..._validation import check_length, is_whole
from ...errors import InputError
from ...recipes.results import Hit, SearchResult
from .connection import connect, database_errors
from .queries import literal, quoted

COLUMNS = ("question", "rank", "passage", "score")
#: A question's id, and the ids and scores of its passages, best first.
Ranking = tuple[Any, Sequence[tuple[Any, float]]]


def write_hits(
    url: str,
    table: str,
    questions: Sequence[Any],
    hits: SearchResult | Sequence[Sequence[Hit]],
    *,
    replace: bool = False,
    create: bool = False,
) -> int:
    """Write the hits of questions into a PostgreSQL table by COPY, in one transaction.

    Parameters
    ----------
    url : str
        As in :class:`PostgresSource`.
    table : str
        Name of the table, optionally with its schema: ``"schema.table"``. Its columns are ``question`` and ``passage``
        (of the types of the ids), ``rank`` (an integer, from 1) and ``score`` (``real`` or ``double precision``).
    questions : sequence
        The id of each question.
    hits : SearchResult, or sequence of sequence of Hit
        The result of a recipe's ``search``: a list of hits for each question.
    replace : bool
        Delete the table's rows of these questions first.
    create : bool
        Create the table if it does not exist: ``question`` and ``passage`` as ``bigint`` if all these ids are integers,
        else as ``text``, ``rank`` as ``integer``, ``score`` as ``double precision``, none of them null, with the
        primary key (question, rank).

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    InputError
        The numbers of questions and lists differ, or the table lacks such columns. Nothing is written.
    StoreError
        The server cannot be reached, or the connection is lost. Nothing is written.

    Examples
    --------
    >>> from hopfuse.stores.postgres import write_hits
    >>> write_hits("postgresql:///news", "hits", ["q1"], recipe.search(["Who?"]), create=True)  # doctest: +SKIP
    10
    """
    check_length(len(hits), "hits", len(questions), "question")

    def rankings() -> Iterator[Ranking]:
        for question, found in zip(questions, hits, strict=True):
            yield question, [(hit.id, hit.score) for hit in found]

    return write_rankings(url, table, rankings, replace=replace, create=create)


def write_rankings(
    url: str, table: str, rankings: Callable[[], Iterable[Ranking]], *, replace: bool = False, create: bool = False
) -> int:
    """Write rankings into a table as :func:`write_hits` does, without holding all of them.

    Parameters
    ----------
    url, table, replace, create
        As in :func:`write_hits`.
    rankings : callable
        Returns the rankings; called once, and once more for each of ``replace`` and ``create``.

    Examples
    --------
    >>> from hopfuse.stores.postgres import write_rankings
    >>> write_rankings("postgresql:///news", "hits", lambda: [("q1", [("a", 0.5)])], create=True)  # doctest: +SKIP
    1
    """
    name, rows = _name(table), 0
    with connect(url) as connection, database_errors(url, f"table {table}", "table"), connection.transaction():
        if create and _is_there(connection, name) is None:
            connection.execute(_creation(name, rankings()))
        if replace:
            questions = "hopfuse_questions"
            connection.execute(
                f"CREATE TEMP TABLE {questions} ON COMMIT DROP AS SELECT question FROM {name} WITH NO DATA"
            )
            with connection.cursor() as cursor, cursor.copy(f"COPY {questions} FROM STDIN") as copy:
                for question, _ in rankings():
                    copy.write_row((question,))
            connection.execute(f"DELETE FROM {name} AS h USING {questions} AS q WHERE h.question = q.question")
        with connection.cursor() as cursor, cursor.copy(f"COPY {name} ({', '.join(COLUMNS)}) FROM STDIN") as copy:
            for question, found in rankings():
                for rank, (passage, score) in enumerate(found, 1):
                    copy.write_row((question, rank, passage, float(score)))
                    rows += 1
    return rows


def check_hits_table(url: str, table: str) -> None:
    """Check, before hits are made, that they can be written: a table that does not exist can be created.

    Raises
    ------
    InputError
        The table lacks a column, or its schema does not exist or takes no tables from this user.
    StoreError
        The server cannot be reached.
    """
    name = _name(table)
    with connect(url) as connection, database_errors(url, f"table {table}", "table"):
        found = _is_there(connection, name)
        if found is None:
            with connection.transaction(force_rollback=True):
                connection.execute(_creation(name, ()))
            return
        known = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped", (found,)
        ).fetchall()
    missing = [column for column in COLUMNS if (column,) not in known]
    if missing:
        raise InputError(
            "missing",
            "table",
            "{field} {given} has no column {column!r}; hits have {allowed}: name another table, which is created",
            given=table,
            column=missing[0],
            allowed=", ".join(COLUMNS),
        )


def _name(table: str) -> str:
    return ".".join(quoted(part) for part in table.split("."))


def _is_there(connection: Any, name: str) -> int | None:
    """Return the oid of a table, or None if it does not exist."""
    (found,) = connection.execute(f"SELECT to_regclass({literal(name)})::oid").fetchone()
    return None if found is None else int(found)


def _creation(name: str, rankings: Iterable[Ranking]) -> str:
    """Return the statement that creates a table for some rankings."""
    question, passage = set[bool](), set[bool]()
    for one, found in rankings:
        question.add(is_whole(one))
        passage.update(is_whole(id) for id, _ in found)
    kinds = ["bigint" if own == {True} else "text" for own in (question, passage)]
    return (
        f"CREATE TABLE {name} (question {kinds[0]} NOT NULL, rank integer NOT NULL, passage {kinds[1]} NOT NULL, score "
        "double precision NOT NULL, PRIMARY KEY (question, rank))"
    )
