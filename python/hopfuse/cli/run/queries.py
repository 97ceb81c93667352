"""Vectors and entities of queries, as inputs of recipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import Index
from ..._validation import check_length, counted
from ...encoders import Encoder
from ...encoders.protocol import first_unencodable
from ...errors import InputError
from ...extract import Match, QuestionMatcher
from ...io.npy import read_npy
from ...io.queries import Query
from ...recipes import spelled

#: What may replace a query's text if its words are not needed.
_INSTEAD = ", or 'entities' and --vectors"


class QueryInputs:
    """Makes the inputs of queries.

    Vectors are those of a file with a row for each of ``total`` queries, the queries' ``own``, or the encoder's;
    entities are as given, or found in the text among those of the passages ``alone``.
    """

    def __init__(
        self,
        index: Index,
        vectors: Path | None,
        encoder: Encoder | None,
        total: int,
        *,
        case_sensitive: bool,
        alone: NDArray[np.bool_] | None = None,
        own: bool = False,
    ) -> None:
        self.encoder, self._index = encoder, index
        self._own = own
        self._vectors = None if vectors is None else _read_vectors(vectors, total)
        self._matcher, self._alone = QuestionMatcher(index, case_sensitive=case_sensitive), alone

    def vectors(self, queries: list[Query], first: int, entities: Sequence[Sequence[Any]] = ()) -> NDArray[Any]:
        """Return vectors of the queries ``first``, ``first + 1``, ... of the file.

        The encoder reads a text with the names among its ``entities`` as a recipe's does.
        """
        if self._vectors is not None:
            return np.asarray(self._vectors[first : first + len(queries)])
        if self._own:
            return np.stack([query.vector for query in queries if query.vector is not None])
        assert self.encoder is not None
        texts = [text_of(q, "to be encoded", _INSTEAD) for q in queries]
        return self.encoder.encode_queries(spelled(texts, entities, self._index) if entities else texts)

    def check_text(self, query: Query, instead: str, where: str) -> None:
        """Refuse a query without a text that can be encoded."""
        assert self.encoder is not None
        if first_unencodable(self.encoder.encode_queries, [text_of(query, "to be encoded", instead, place=where)]) == 0:
            raise InputError(
                "empty",
                "text",
                "query {id!r} has no words that the encoder reads; give it some{instead}, or leave it out",
                id=query.id,
                instead=instead,
            ).at(where)

    def entities(self, queries: list[Query]) -> list[Sequence[str | int | Match]]:
        """Return the entities of each query, as given or found in its text."""
        without = [text_of(q, "to find names in", _INSTEAD) for q in queries if q.entities is None]
        names = iter(self._matcher.match(without, allow=self._alone) if without else [])
        return [next(names) if q.entities is None else q.entities for q in queries]


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


def unknown_entity(entity: int, index: Index) -> InputError:
    """Return the error for the number of an entity that the index does not have."""
    return InputError(
        "unknown",
        "entities",
        "{field} has {given}, and the index has the entities 0 .. {last}; correct the number, or give the name",
        given=entity,
        last=index.num_entities - 1,
    )


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
