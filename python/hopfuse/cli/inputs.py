"""What a recipe needs of queries: their vectors and their entities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Index
from ..encoders import Encoder
from ..errors import InputError
from .names import NameFinder
from .options import make_encoder
from .queries import Query

#: What does without a query's text, where its words are not needed.
_INSTEAD = ", or 'entities' and --vectors"


class QueryInputs:
    """Vectors from a file or an encoder, entities as given or as they stand in the text.

    Parameters
    ----------
    index : Index
    vectors : Path or None
        An .npy file with a row per query; by default the encoder's.
    encoder : str or None
        What ``--encoder`` names.
    total : int
        Queries in the file.
    case_sensitive : bool
    """

    def __init__(
        self, index: Index, vectors: Path | None, encoder: str | None, total: int, *, case_sensitive: bool
    ) -> None:
        self.encoder: Encoder | None = None if encoder is None else make_encoder(encoder)
        self._vectors = None if vectors is None else _read_vectors(vectors, total)
        self._names = NameFinder(index, case_sensitive=case_sensitive)

    def vectors(self, queries: list[Query], first: int) -> NDArray[Any]:
        """Rows for the queries ``first``, ``first + 1``, ... of the file."""
        if self._vectors is not None:
            return np.asarray(self._vectors[first : first + len(queries)])
        assert self.encoder is not None
        return self.encoder.encode_queries([text_of(q, "to be encoded", _INSTEAD) for q in queries])

    def entities(self, queries: list[Query]) -> list[Sequence[str | int]]:
        """Names or numbers of entities for each query."""
        without = [text_of(q, "to find names in", _INSTEAD) for q in queries if q.entities is None]
        names = iter(self._names.find(without) if without else [])
        return [next(names) if q.entities is None else q.entities for q in queries]


def check_one_source(vectors: Path | None, encoder: str | None, option: str = "--vectors") -> None:
    """Refuse both or neither of ``--vectors``, or what else gives them, and ``--encoder``."""
    if (vectors is None) == (encoder is None):
        raise InputError(f"give {option} or --encoder, and not both: each query needs one vector")


def chunks(queries: Iterator[Query], size: int) -> Iterator[list[Query]]:
    """The queries, so many at a time."""
    while chunk := list(islice(queries, size)):
        yield chunk


def text_of(query: Query, purpose: str, instead: str = "") -> str:
    """A query's text, or an error that says what it is needed for, and what else would do."""
    if query.text is None:
        raise InputError(f"query {query.id!r} has no text {purpose}; give it 'text'{instead}")
    return query.text


def _read_vectors(path: Path, rows: int) -> NDArray[Any]:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--vectors: {path} cannot be read as an .npy array: {error}") from None
    if vectors.ndim != 2 or len(vectors) != rows:
        raise InputError(f"--vectors has shape {vectors.shape}; there are {rows} queries, one vector each")
    return np.asarray(vectors)
