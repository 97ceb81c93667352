"""Vectors and entities of queries, as inputs of recipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import Retriever
from ..._validation import check_excludes, check_length, counted
from ...errors import InputError
from ...io.npy import read_npy
from ...io.queries import Query

#: What may replace a query's text if its words are not needed.
_INSTEAD = ", or 'entities' and --vectors"


class QueryInputs:
    """The inputs of queries: their own, and vectors of a file with a row for each of ``total`` queries."""

    def __init__(self, vectors: Path | None, total: int) -> None:
        self._vectors = None if vectors is None else _read_vectors(vectors, total)

    def check(self, retriever: Retriever, query: Query, row: int, where: str) -> None:
        """Refuse a query that a search would refuse; the error names the place ``where`` and the column."""
        try:
            if self._vectors is not None:
                check_excludes("vectors", self._vectors, "queries", query.vector, "which have the column 'vector'")
            retriever.check_question(query.text, self._vector(query, row), query.entities)
        except InputError as error:
            in_file = error.field == "vector" and self._vectors is not None
            raise error.at(where, f"vectors[{row}]" if in_file else None) from None

    def of(self, queries: Sequence[Query], rows: Sequence[int]) -> dict[str, Any]:
        """Return the inputs of a search for queries, which are these rows of the file."""
        inputs: dict[str, list[Any]] = {
            "questions": [query.text for query in queries],
            "vectors": [self._vector(query, row) for row, query in zip(rows, queries, strict=True)],
            "entities": [query.entities for query in queries],
        }
        return {name: None if all(one is None for one in given) else given for name, given in inputs.items()}

    def _vector(self, query: Query, row: int) -> NDArray[Any] | None:
        return query.vector if self._vectors is None else np.asarray(self._vectors[row])


def chunks(queries: Iterator[Query], size: int) -> Iterator[list[Query]]:
    """Yield the queries in lists of ``size``."""
    while chunk := list(islice(queries, size)):
        yield chunk


def text_of(query: Query, purpose: str, instead: str = "", *, place: str = "") -> str:
    """Return a query's text; the error for a missing one says what it is needed for and what may replace it."""
    if query.text is None:
        raise InputError(
            "missing",
            "text",
            "query {id!r} has no text {purpose}; give it {field!r}{instead}",
            id=query.id,
            purpose=purpose,
            instead=instead,
        ).at(place or None)
    return query.text


def unknown_gold(path: Path, count: int, first: str) -> InputError:
    """Return the error for judgements of passages that the index does not have."""
    return InputError(
        "unknown",
        "qrels",
        "{field}: {path} has {count} that the index does not have, such as {given!r}",
        path=path,
        count=counted(count, "gold passage"),
        given=first,
    )


def unjudged(path: Path, rows: Sequence[Query]) -> InputError:
    """Return the error for judgements of none of the questions."""
    return InputError(
        "missing",
        "qrels",
        "{field}: {path} judges none of the {count}, such as {example!r}",
        path=path,
        count=counted(len(rows), "question"),
        example=rows[0].id if rows else "",
    )


def _read_vectors(path: Path, rows: int) -> NDArray[Any]:
    vectors = read_npy(path, "vectors")
    if vectors.ndim != 2:
        raise InputError(
            "shape", "vectors", "{field} has the shape {given}; give one vector of each query", given=vectors.shape
        )
    check_length(len(vectors), "vectors", rows, "query")
    return vectors
