"""Read a batch of questions: texts, vectors, and seeds as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.convert import to_numpy
from ..._validation import counted
from ...encoders import Encoder, as_encoder
from ...encoders.protocol import first_unencodable
from ...errors import InputError
from ...index import Index
from ...types import Seeds
from .seeding import Seed
from .spelling import is_one_case, spelled

MIN_SEED_WIDTH = 8
"""The smallest width of a row of seeds. Few widths need few recordings."""


def check_texts(queries: Any) -> None:
    """Refuse anything but a sequence of strings."""
    if isinstance(queries, str) or not isinstance(queries, Sequence | np.ndarray):
        raise InputError(
            "type",
            "queries",
            "{field} is a {kind}; it must be a list of strings: [question]",
            kind=type(queries).__name__,
        )
    for at, text in enumerate(queries):
        if not isinstance(text, str):
            raise InputError(
                "type", None, "question {at} has the type {kind}; it must be a string", at=at, kind=type(text).__name__
            )


def index_encoder(encoder: Any, index: Index) -> Encoder | None:
    """Return a user's encoder as an Encoder.

    Raises
    ------
    InputError
        The object cannot encode, or the index was built with another encoder.
    """
    if encoder is None:
        return None
    fitted, built = as_encoder(encoder), index.encoder
    if built is not None:
        ours, theirs = ((e.name, e.dim, e.normalize) for e in (fitted, built))
        if ours != theirs:
            raise InputError(
                "UNSORTED",
                "encoder",
                "{field} is {words}, and the index was built with {words_2}: use that one, or build the "
                "index with this one",
                words=_words(*ours),
                words_2=_words(*theirs),
            )
    return fitted


def question_vectors(encoder: Encoder | None, queries: Sequence[str] | None, vectors: Any) -> NDArray[Any]:
    """Return the given vectors or the encoder's, (B, d). The operations check their values."""
    if vectors is None:
        if queries is None or encoder is None:
            raise InputError("missing", None, "search needs {@vectors}, or {@queries} and a recipe with an encoder")
        empty = first_unencodable(encoder.encode_queries, queries)
        if empty is not None:
            raise InputError(
                "unused",
                None,
                "question {empty} is empty, and the encoder has no vector for it; give it words, or leave it out",
                empty=empty,
            )
        vectors = encoder.encode_queries(list(queries))
    array = np.atleast_2d(to_numpy(vectors, "vectors"))
    if queries is not None and len(queries) != len(array):
        raise InputError(
            "UNSORTED",
            None,
            "{count} with {count_2}; give one vector per query",
            count=counted(len(queries), "query"),
            count_2=counted(len(array), "vector"),
        )
    return array


def shared_vectors(
    encoder: Encoder | None, queries: Sequence[str] | None, vectors: Any
) -> tuple[NDArray[Any] | None, int]:
    """Return the questions' vectors, (B, d), and B; no vectors if the encoder is to read questions with their names."""
    if vectors is None and encoder is not None and queries is not None and any(map(is_one_case, queries)):
        return None, len(queries)
    found = question_vectors(encoder, queries, vectors)
    return found, len(found)


def named_vectors(
    shared: NDArray[Any] | None,
    encoder: Encoder | None,
    queries: Sequence[str] | None,
    mentions: Sequence[Sequence[Any]] | None,
    index: Index,
) -> NDArray[Any]:
    """Return ``shared``, (B, d); if None, the encoder's vectors of the questions with their names (:func:`spelled`)."""
    if shared is not None:
        return shared
    texts = queries if queries is None or mentions is None else spelled(queries, mentions, index)
    return question_vectors(encoder, texts, None)


def padded(seeds: list[list[Seed]], num_passages: int) -> Seeds:
    """Return entity seeds as nodes of the graph, in rows whose width is a power of two."""
    rows = [{num_passages + s.entity: s.weight for s in row} for row in seeds]
    return Seeds.from_rows(rows, seed_width(max(map(len, rows), default=0)))


def seed_width(seeds: int) -> int:
    """Return the width of a row for this number of seeds: a power of two."""
    return max(MIN_SEED_WIDTH, 1 << max(0, seeds - 1).bit_length())


def _words(name: str, dim: int, normalize: bool) -> str:
    return f"{name!r} ({dim} dimensions, {'normalised' if normalize else 'not normalised'})"
