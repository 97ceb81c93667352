"""Write scores into a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._validation import check_length
from ...recipes.results import Hit, SearchResult
from .connection import connect, database_errors
from .queries import quoted

COLUMNS = ("question", "rank", "passage", "score")


def write_hits(
    url: str,
    table: str,
    questions: Sequence[Any],
    hits: SearchResult | Sequence[Sequence[Hit]],
    *,
    replace: bool = False,
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
    >>> write_hits("postgresql:///news", "hits", ["q1"], recipe.search(["Who?"]))  # doctest: +SKIP
    10
    """
    check_length(len(hits), "hits", len(questions), "question")
    name = ".".join(quoted(part) for part in table.split("."))
    rows = 0
    with connect(url) as connection, database_errors(url, f"table {table}", "table"), connection.transaction():
        if replace:
            connection.cursor().executemany(f"DELETE FROM {name} WHERE question = %s", [(one,) for one in questions])
        columns = ", ".join(COLUMNS)
        with connection.cursor() as cursor, cursor.copy(f"COPY {name} ({columns}) FROM STDIN") as copy:
            for question, found in zip(questions, hits, strict=True):
                for rank, hit in enumerate(found, 1):
                    copy.write_row((question, rank, hit.id, hit.score))
                    rows += 1
    return rows
