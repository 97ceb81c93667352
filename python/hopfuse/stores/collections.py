"""Points of vector databases as passages: what the readers of Chroma and Qdrant share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._validation import check_excludes
from ..errors import InputError
from ..io.arrow import arrow, empty_batch
from .tables import TableReader, as_float32, vector_list

#: A point: its id, text, title, metadata and vector.
Point = tuple[Any, Any, Any, Mapping[str, Any], Any]


def passages_alone(
    pages: Callable[[], Iterable[Sequence[Point]]], store: str, labels: Mapping[str, str]
) -> TableReader:
    """Return the snapshot of a store that has only passages; ``labels`` are its names of their columns."""
    return TableReader(lambda table: _batches(pages(), store, labels) if table == "passages" else None)


def _batches(pages: Iterable[Sequence[Point]], store: str, labels: Mapping[str, str]) -> Iterator[Any]:
    """Yield pages of points as record batches of passages.

    A point without a text or a vector, with a title that is not a string, or with an id of another type or a vector of
    another dimension than the first is a batch of its own, which is refused with its row.
    """
    pa = arrow()
    first: Point | None = None
    for page in pages:
        alike: list[Point] = []
        for point in page:
            first = first or point
            if _is_like(point, first):
                alike.append(point)
                continue
            yield from _batch(alike, store, labels)
            yield from _batch([point], store, labels)
            alike = []
        yield from _batch(alike, store, labels)
    if first is None:
        yield empty_batch(pa.schema([("id", pa.string()), ("text", pa.string())]))


def _batch(points: Sequence[Point], store: str, labels: Mapping[str, str]) -> Iterator[Any]:
    if not points:
        return
    pa = arrow()
    ids, texts, titles, metadata, vectors = zip(*points, strict=True)
    columns = {
        "id": pa.array(ids),
        "title": pa.array(titles, None if any(titles) else pa.string()),
        "text": pa.array(texts, None if any(texts) else pa.string()),
        "vector": _vectors(vectors, store),
        "metadata": pa.array([json.dumps(dict(one)) if one else None for one in metadata], pa.string()),
    }
    fields = [
        pa.field(name, column.type, metadata={"column": labels.get(name, name)}) for name, column in columns.items()
    ]
    yield pa.record_batch(list(columns.values()), schema=pa.schema(fields))


def _vectors(vectors: Sequence[Any], store: str) -> Any:
    """Return vectors of one length as an Arrow array of lists; the vector of a single point may be missing."""
    if vectors[0] is None or np.ndim(vectors[0]) != 1:
        return arrow().array([None], arrow().list_(arrow().float32()))
    return vector_list(as_float32(np.asarray(vectors), store))


def _is_like(point: Point, first: Point) -> bool:
    """Return whether a point can be in a batch with the first one, and has what a passage needs."""
    id, text, title, _, vector = point
    whole = isinstance(text, str) and (title is None or isinstance(title, str))
    return whole and type(id) is type(first[0]) and np.ndim(vector) == 1 and np.shape(vector) == np.shape(first[4])


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
