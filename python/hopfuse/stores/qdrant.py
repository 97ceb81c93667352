"""Qdrant collections as a source, from a local folder or a server."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_choice, import_extra
from ..errors import InputError, StoreError
from .collections import Point, check_place, collection_of, passages_alone
from .tables import TableReader, VectorsChangedWarning, cannot_open, existing, not_in_store, split_place

PAGE = 1024


class QdrantSource:
    """A Qdrant collection: one passage for each point, in the order of their ids.

    It is not a snapshot: points written during the read may be missed. A server normalises the vectors of a collection
    with cosine distance; the index has the normalised ones, with a :class:`hopfuse.stores.VectorsChangedWarning`.

    Parameters
    ----------
    path : path, optional
        Folder of a local Qdrant.
    collection : str
        Name of the collection.
    text, title : str, optional
        Payload keys of the text and the title; other keys become metadata.
    vector : str, optional
        A named vector; by default the collection's only one.
    client : qdrant_client.QdrantClient, optional
        A client of a server, instead of ``path``.

    Raises
    ------
    InputError
        The folder does not exist, or not exactly one of ``path`` and ``client`` is given.
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
        check_place(path, client)
        self._path = None if path is None else os.fspath(path)
        if self._path is not None:
            existing(Path(self._path, "meta.json"), "the folder of a local Qdrant, which has this file")
        self._client, self._collection = client, collection
        self._text, self._title, self._vector = text, title, vector
        self._qdrant = import_extra("qdrant_client", "reading a Qdrant collection")

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the collection.

        Raises
        ------
        StoreError
            The folder cannot be opened, the server cannot be reached, or the collection does not exist.
        InputError
            The vector does not exist, or there are several and none is named.
        """
        with ExitStack() as opened:
            client = self._client
            if client is None:
                try:
                    client = self._qdrant.QdrantClient(path=self._path)
                except (RuntimeError, ValueError) as error:
                    raise cannot_open("Qdrant", self._path, error) from None
                opened.callback(client.close)
            with self._server_errors():
                if not client.collection_exists(self._collection):
                    known = sorted(one.name for one in client.get_collections().collections)
                    raise not_in_store("Qdrant", "collection", self._collection, known)
                name, cosine = self._vector_of(client.get_collection(self._collection).config.params.vectors)
            labels = {"text": self._text, "title": self._title}
            yield passages_alone(partial(self._pages, client, name, cosine), f"Qdrant's {self._collection!r}", labels)

    @contextmanager
    def _server_errors(self) -> Iterator[None]:
        try:
            yield
        except self._qdrant.http.exceptions.ApiException as error:
            raise StoreError(
                "connection",
                None,
                "Qdrant's server cannot be read: {error}",
                error=str(error) or type(error).__name__,
            ) from None

    def _vector_of(self, stored: Any) -> tuple[str, bool]:
        """Return the name of the vector to read, "" for the unnamed one, and whether its distance is cosine."""
        named = stored if isinstance(stored, dict) else {"": stored}
        if not named:
            raise InputError(
                "missing",
                "collection",
                "{field} is {given!r}, which has no dense vector; give one that has",
                given=self._collection,
            )
        if self._vector is None and len(named) > 1:
            raise InputError(
                "missing",
                "vector",
                "{field} is missing, and {collection!r} has several; give one of {allowed}",
                collection=self._collection,
                allowed=", ".join(named),
            )
        name = self._vector if self._vector is not None else str(next(iter(named)))
        check_choice(name, "vector", named)
        if getattr(named[name], "multivector_config", None) is not None:
            raise InputError(
                "unsupported",
                "vector",
                "{field} {given!r} of {collection!r} is a multivector; name another",
                given=name,
                collection=self._collection,
            )
        return name, str(named[name].distance.value) == "Cosine"

    def _pages(self, client: Any, name: str, cosine: bool) -> Iterator[list[Point]]:
        after = None
        while True:
            wanted = [name] if name else True
            with self._server_errors():
                points, after = client.scroll(
                    self._collection, limit=PAGE, offset=after, with_payload=True, with_vectors=wanted
                )
            page = [self._point(one, name) for one in points]
            vectors = [vector for *_, vector in page if np.ndim(vector) == 1]
            if cosine and vectors:
                if max(abs(float(np.linalg.norm(vector)) - 1) for vector in vectors) < 1e-5:
                    warnings.warn(
                        f"Qdrant returns the vectors of {self._collection!r} normalised (cosine distance); the index "
                        "has these, not the vectors that were written",
                        VectorsChangedWarning,
                        stacklevel=2,
                    )
                cosine = False  # warn once
            yield page
            if after is None:
                return

    def _point(self, one: Any, name: str) -> Point:
        payload = dict(one.payload or {})
        vector = one.vector.get(name) if isinstance(one.vector, dict) else one.vector
        return one.id, payload.pop(self._text, None), payload.pop(self._title, None), payload, vector


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> QdrantSource:
    """Return the source of ``qdrant:PATH?text=page_content``; the query of passages is the collection's name."""
    path, values = split_place(place, ("text", "title", "vector"))
    return QdrantSource(path, collection=collection_of(place, queries), **values)
