"""Collections of vectors with what is stored beside them, as passages: what the readers of Chroma and Qdrant share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..index.arrow_columns import arrow
from .tables import as_float32, vector_list

#: A point: its id, text, title, metadata and vector.
Point = tuple[Any, Any, Any, Mapping[str, Any], Any]


class PassagesAlone:
    """A snapshot of a store that has passages and nothing else."""

    def __init__(self, passages: Callable[[], Iterable[Any]]) -> None:
        self._passages = passages

    def passages(self) -> Iterable[Any]:
        """Return the passages."""
        return self._passages()

    def entities(self) -> None:
        """Return None: there are none."""

    def edges(self) -> None:
        """Return None: there are none."""

    def facts(self) -> None:
        """Return None: there are none."""


def passage_batches(pages: Iterable[Sequence[Point]], store: str) -> Iterator[Any]:
    """Give pages of points as record batches of passages.

    Raises
    ------
    InputError
        A point without text or vector, or with a vector of another dimension; the message names it.
    """
    pa = arrow()
    dim, empty = None, True
    for page in pages:
        if not page:
            continue
        for id, text, _, _, vector in page:
            if not isinstance(text, str):
                raise InputError(f"{store} has no text of {id!r}: say where it is, or give the point one")
            if vector is None:
                raise InputError(f"{store} has no vector of {id!r}; leave the point out, or give it one")
            dim = len(vector) if dim is None else dim
            if len(vector) != dim:
                raise InputError(f"{store} has a vector of {len(vector)} components of {id!r}, and of {dim} before it")
        ids, texts, titles, metadata, vectors = zip(*page, strict=True)
        empty = False
        columns = {
            "id": pa.array(ids),
            "title": pa.array([title if isinstance(title, str) else None for title in titles], pa.string()),
            "text": pa.array(texts, pa.string()),
            "vector": vector_list(as_float32(np.asarray(vectors), store)),
            "metadata": pa.array([json.dumps(dict(one)) if one else None for one in metadata], pa.string()),
        }
        yield pa.record_batch(list(columns.values()), names=list(columns))
    if empty:
        yield pa.record_batch([pa.array([], pa.string()), pa.array([], pa.string())], names=["id", "text"])


def collection_of(place: str, queries: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a collection, which stands in the place of the query of passages.

    Raises
    ------
    InputError
    """
    names = queries.get("passages", ())
    if len(names) != 1 or len(queries) > 1:
        raise InputError(f"{place!r} has passages alone; give --passages NAME, the name of its collection, and no more")
    return names[0]


def known_values(place: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of a payload as a URL gives them.

    Raises
    ------
    InputError
    """
    unknown = [name for name in values if name not in ("text", "title", "vector")]
    if unknown:
        raise InputError(f"{place!r} has {unknown[0]!r}; allowed: text, title and vector")
    return dict(values)
