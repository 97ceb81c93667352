"""Points of vector databases as passages: what the readers of Chroma and Qdrant share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._validation import check_excludes, check_type, wrong_type
from ..errors import InputError
from ..io.arrow import arrow, empty_batch
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
        for at, point in enumerate(page, row):
            if not at and point[4] is not None:
                kind, dim = type(point[0]), np.size(point[4])
            try:
                _check_point(point, kind, dim)
            except InputError as error:
                raise error.at(f"{store}, passages row {at} (id {point[0]!r})") from None
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


def _check_point(point: Point, kind: type, dim: int) -> None:
    id, text, title, _, vector = point
    if not isinstance(text, str):
        raise InputError("missing", "text", "{field} is missing; give the point one, or name its key (Qdrant: {@text})")
    if title is not None:
        check_type(title, "title", str, "a string")
    if vector is None or np.ndim(vector) != 1:
        raise InputError(
            "shape", "vector", "{field} is missing, or the point has several; give it one, or leave the point out"
        )
    if not isinstance(id, kind):
        raise wrong_type(id, "id", f"a {kind.__name__}, as that of row 0")
    if len(vector) != dim:
        raise InputError(
            "length",
            "vector",
            "{field} has {given} components; the rows before it have {allowed}",
            given=len(vector),
            allowed=dim,
        )


def check_place(path: object, client: object) -> None:
    """Raise unless one of a local folder and a client is given."""
    check_excludes("client", client, "path", path)
    if path is None and client is None:
        raise InputError("missing", "path", "{field} is missing; give it, a local folder, or {@client}")


def collection_of(place: str, queries: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a collection, which is given as the query of passages.

    Raises
    ------
    InputError
    """
    names = queries.get("passages", ())
    if len(names) != 1 or len(queries) > 1:
        raise InputError(
            "missing",
            "passages",
            "{place!r} has only passages: give {field} as the name of its collection, and no other query",
            place=place,
        )
    return names[0]
