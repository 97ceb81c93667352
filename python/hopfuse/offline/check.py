"""Check all rows of a file of queries before any is scored."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..io.queries import JsonlQueries, ParquetQueries, Query, query_file


def check_rows(path: Path, check: Callable[[Query, str], object]) -> int:
    """Read all rows; refuse malformed rows, repeated ids, and what ``check`` refuses.

    Parameters
    ----------
    path : Path
        A .jsonl or .parquet file.
    check : function
        Called with each query and its place in the file, for messages.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    InputError
        A row is refused; the message names row, column and fix.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place, "queries.jsonl")
    ...     size = path.write_text('{"id": "a", "text": "one"}\\n{"id": "b", "text": "two"}\\n')
    ...     check_rows(path, lambda query, where: None)
    2
    """
    file = query_file(path)
    hashes = array("q")  # 8 bytes an id; ids with equal hashes are compared later
    for where, query in file.rows():
        check(query, where)
        hashes.append(hash(query.id))
    ordered = np.sort(np.frombuffer(hashes, np.int64)) if hashes else np.zeros(0, np.int64)
    twice = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    if twice:
        _refuse_repeated(file, twice)
    return len(hashes)


def _refuse_repeated(file: JsonlQueries | ParquetQueries, hashes: set[int]) -> None:
    places: dict[str, str] = {}
    for where, query in file.rows():
        if hash(query.id) in hashes and places.setdefault(query.id, where) != where:
            raise InputError(
                "duplicate",
                "id",
                "{field} {given!r} is also that of {other}; give each query its own (a query without one has its row "
                "number)",
                given=query.id,
                other=places[query.id],
            ).at(where)
