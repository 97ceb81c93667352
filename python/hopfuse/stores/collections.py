"""Points of vector databases as passages: what the readers of Chroma and Qdrant share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..index.arrow_columns import arrow, empty_batch
from .tables import TableReader, as_float32, vector_list

#: A point: its id, text, title, metadata and vector.
Point = tuple[Any, Any, Any, Mapping[str, Any], Any]


def passages_alone(pages: Callable[[], Iterable[Sequence[Point]]], store: str) -> TableReader:
    """Return the snapshot of a store that has only passages."""
    return TableReader(lambda table: _batches(pages(), store) if table == "passages" else None)


def _batches(pages: Iterable[Sequence[Point]], store: str) -> Iterator[Any]:
    """Yield pages of points as record batches of passages.

    Raises
    ------
    InputError
        A point has no text or no vector, a title that is not a string, or an id of another type or a vector of another
        dimension than the points before it. The message names the point.
    """
    pa = arrow()
    row, kind, dim = 0, str, 0
    for page in pages:
        for at, (id, text, title, _, vector) in enumerate(page, row):
            where = f"{store}, passages row {at} (id {id!r})"
            if not isinstance(text, str):
                raise InputError(
                    "unknown",
                    None,
                    "{where} has no text; give the point one, or name its key (Qdrant: {@text})",
                    where=where,
                )
            if title is not None and not isinstance(title, str):
                raise InputError(
                    "type",
                    None,
                    "{where} has the title {title!r}; it must be a string: name another key by {@title}",
                    where=where,
                    title=title,
                )
            if vector is None or np.ndim(vector) != 1:
                raise InputError(
                    "UNSORTED",
                    None,
                    "{where} does not have exactly one vector; leave the point out, or give it one",
                    where=where,
                )
            if not at:
                kind, dim = type(id), len(vector)
            if not isinstance(id, kind):
                raise InputError(
                    "UNSORTED",
                    None,
                    "{where} has an id of the type {kind}, and row 0 one of {kind_2}; ids are all strings or all "
                    "integers",
                    where=where,
                    kind=type(id).__name__,
                    kind_2=kind.__name__,
                )
            if len(vector) != dim:
                raise InputError(
                    "UNSORTED",
                    None,
                    "{where} has a vector of {number} components; the rows before it have {dim}",
                    where=where,
                    number=len(vector),
                    dim=dim,
                )
        if page:
            row += len(page)
            yield _batch(page, store)
    if not row:
        yield empty_batch(pa.schema([("id", pa.string()), ("text", pa.string())]))


def _batch(page: Sequence[Point], store: str) -> Any:
    pa = arrow()
    ids, texts, titles, metadata, vectors = zip(*page, strict=True)
    columns = {
        "id": pa.array(ids),
        "title": pa.array(titles, pa.string()),
        "text": pa.array(texts, pa.string()),
        "vector": vector_list(as_float32(np.asarray(vectors), store)),
        "metadata": pa.array([json.dumps(dict(one)) if one else None for one in metadata], pa.string()),
    }
    return pa.record_batch(list(columns.values()), names=list(columns))


def collection_of(place: str, queries: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a collection, which is given as the query of passages.

    Raises
    ------
    InputError
    """
    names = queries.get("passages", ())
    if len(names) != 1 or len(queries) > 1:
        raise InputError(
            "UNSORTED",
            None,
            "{place!r} has only passages; give --passages NAME, the name of its collection, and no other query",
            place=place,
        )
    return names[0]
