"""Queries of files, as inputs of a retriever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Retriever
from .._validation import check_excludes, check_length, counted
from ..errors import HopfuseError, InputError
from ..io.files import read_npy
from ..io.queries import Query


class QueryInputs:
    """The inputs of queries: their own, and vectors of a file with a row for each of ``total`` queries."""

    def __init__(self, vectors: Path | None, total: int) -> None:
        self._vectors = None if vectors is None else _read_vectors(vectors, total)

    def check(self, retriever: Retriever, query: Query, row: int, where: str) -> None:
        """Refuse a query that a search would refuse; the error names the place ``where`` and the column."""
        try:
            self._check(retriever, query, row)
        except HopfuseError as error:
            in_file = error.field == "vector" and self._vectors is not None
            raise error.at(where, f"vectors[{row}]" if in_file else None) from None

    def _check(self, retriever: Retriever, query: Query, row: int) -> None:
        if self._vectors is not None:
            check_excludes("vectors", self._vectors, "queries", query.vector, "which have the column 'vector'")
        try:
            retriever.check_question(query.text, self._vector(query, row), query.entities)
        except InputError as error:
            if (error.code, error.field) == ("missing", "vector") and query.text is not None:
                retriever.prepare(query.text)  # says why nothing makes the vector
            raise

    def of(self, queries: Sequence[Query], rows: Sequence[int]) -> dict[str, Any]:
        """Return the inputs of a search for queries, which are these rows of the file."""
        return {
            "questions": [query.text for query in queries],
            "vectors": [self._vector(query, row) for row, query in zip(rows, queries, strict=True)],
            "entities": [query.entities for query in queries],
        }

    def _vector(self, query: Query, row: int) -> NDArray[Any] | None:
        return query.vector if self._vectors is None else np.asarray(self._vectors[row])


def text_of(query: Query, purpose: str) -> str:
    """Return a query's text; the error for a missing one says what it is needed for."""
    if query.text is None:
        raise InputError(
            "missing", "text", "query {id!r} has no text {purpose}; give it {field!r}", id=query.id, purpose=purpose
        )
    return query.text


def unknown_gold(path: Path, count: int, first: str, field: str = "qrels") -> InputError:
    """Return the error for judgements of passages that the index does not have; ``field`` names their file."""
    return InputError(
        "unknown",
        field,
        "{field}: {path} has {count} that the index does not have, such as {given!r}",
        path=path,
        count=counted(count, "gold passage"),
        given=first,
    )


def unjudged(path: Path, rows: Sequence[Query], field: str = "qrels") -> InputError:
    """Return the error for judgements of none of the questions; ``field`` names their file."""
    return InputError(
        "missing",
        field,
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
