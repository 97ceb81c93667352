"""Collections of Qdrant as a source: a local folder, or a server."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError, StoreError
from .collections import PassagesAlone, Point, collection_of, known_values, passage_batches
from .tables import VectorsChangedWarning, existing, split_place

PAGE = 1024


class QdrantSource:
    """A collection of Qdrant: a passage for each point, in the order of their ids.

    It is no snapshot if points are written meanwhile. A server keeps the vectors of a collection of cosine distance
    normalised: the index has those, and a :class:`hopfuse.stores.VectorsChangedWarning` says so.

    Parameters
    ----------
    path : path, optional
        The folder of a local collection.
    collection : str
    text, title : str, optional
        Keys of the payload; the others are metadata.
    vector : str, optional
        A named vector; by default the collection's only one.
    client : qdrant_client.QdrantClient, optional
        Of a server, instead of ``path``.

    Raises
    ------
    InputError
        No such folder, path and client both or neither.
    MissingExtraError
        qdrant-client is not installed.

    Examples
    --------
    >>> from hopfuse.stores.qdrant import QdrantSource
    >>> source = QdrantSource("qdrant-folder", collection="chunks", text="page_content")  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        collection: str,
        text: str = "text",
        title: str = "title",
        vector: str | None = None,
        client: Any = None,
    ) -> None:
        if (path is None) == (client is None):
            raise InputError("give either path, of a local folder, or client, of a server")
        self._path = None if path is None else os.fspath(existing(Path(path), "the folder of a local Qdrant"))
        self._client, self._collection = client, collection
        self._text, self._title, self._vector = text, title, vector
        if client is None:
            try:
                self._qdrant = import_module("qdrant_client")
            except ImportError:
                raise MissingExtraError("qdrant-client", "qdrant", "reading a Qdrant collection") from None

    @contextmanager
    def snapshot(self) -> Iterator[PassagesAlone]:
        """Return the points as they are read.

        Raises
        ------
        StoreError
            The folder cannot be opened, or has no such collection.
        """
        client = self._client
        try:
            client = client or self._qdrant.QdrantClient(path=self._path)
            if not client.collection_exists(self._collection):
                known = sorted(one.name for one in client.get_collections().collections)
                raise StoreError(f"Qdrant has no collection {self._collection!r}; it has {known}")
        except (RuntimeError, ValueError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"Qdrant cannot open {self._path}: {error}") from None
        try:
            cosine = self._is_cosine(client)
            yield PassagesAlone(lambda: passage_batches(self._pages(client, cosine), f"Qdrant's {self._collection!r}"))
        finally:
            if self._client is None:
                client.close()

    def _is_cosine(self, client: Any) -> bool:
        """Return whether the vectors are of cosine distance, which a server keeps normalised."""
        stored = client.get_collection(self._collection).config.params.vectors
        named = stored if isinstance(stored, dict) else {"": stored}
        if self._vector is None and len(named) > 1:
            raise InputError(f"{self._collection!r} has the vectors {', '.join(named)}; give vector=, one of them")
        chosen = self._vector if self._vector is not None else next(iter(named))
        if chosen not in named:
            raise InputError(f"{self._collection!r} has no vector {chosen!r}; it has {', '.join(map(repr, named))}")
        return str(named[chosen].distance.value) == "Cosine"

    def _pages(self, client: Any, cosine: bool) -> Iterator[list[Point]]:
        after = None
        while True:
            wanted = True if self._vector is None else [self._vector]
            points, after = client.scroll(
                self._collection, limit=PAGE, offset=after, with_payload=True, with_vectors=wanted
            )
            page = [self._point(one) for one in points]
            if cosine and page and all(vector is not None for *_, vector in page):
                lengths = np.linalg.norm(np.asarray([vector for *_, vector in page]), axis=1)
                if np.abs(lengths - 1).max() < 1e-5:
                    warnings.warn(
                        f"Qdrant gives the vectors of {self._collection!r} normalised (cosine distance), whatever was "
                        "put in; the index has those",
                        VectorsChangedWarning,
                        stacklevel=2,
                    )
                cosine = False  # said once
            yield page
            if after is None:
                return

    def _point(self, one: Any) -> Point:
        payload = dict(one.payload or {})
        vector = one.vector
        if isinstance(vector, dict):
            vector = vector.get(self._vector) if self._vector is not None else next(iter(vector.values()), None)
        return one.id, payload.pop(self._text, None), payload.pop(self._title, None), payload, vector


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> QdrantSource:
    """Return the store of ``qdrant:PATH?text=page_content``; the query of passages is the collection's name."""
    path, values = split_place(place)
    return QdrantSource(path, collection=collection_of(place, queries), **known_values(place, values))
