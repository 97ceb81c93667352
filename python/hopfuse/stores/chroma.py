"""Chroma collections as a source, from a local folder or through a client."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .._validation import import_extra
from .collections import Point, check_place, collection_of, passages_alone
from .tables import TableReader, existing, not_in_store, split_place

PAGE = 1024


class ChromaSource:
    """A Chroma collection: one passage for each document, in the order in which they were added.

    It is not a snapshot: documents added during the read may be missed. Chroma returns float64 vectors; the index has
    the float32 values that were added.

    Parameters
    ----------
    path : path, optional
        Folder of a ``PersistentClient``.
    collection : str
        Name of the collection.
    title : str, optional
        Metadata key of the title; other keys stay metadata.
    client : chromadb.ClientAPI, optional
        A client to read through instead of ``path``.

    Raises
    ------
    InputError
        The folder does not exist, or not exactly one of ``path`` and ``client`` is given.
    MissingExtraError
        chromadb is not installed.

    Examples
    --------
    >>> from hopfuse.stores.chroma import ChromaSource
    >>> source = ChromaSource("chroma-folder", collection="chunks")  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        collection: str,
        title: str = "title",
        client: Any = None,
    ) -> None:
        check_place(path, client)
        self._path = None if path is None else os.fspath(path)
        if self._path is not None:
            existing(Path(self._path, "chroma.sqlite3"), "the folder of a Chroma database, which has this file")
        self._client, self._collection, self._title = client, collection, title
        if client is None:
            self._chroma = import_extra("chromadb", "reading a Chroma collection")

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the collection.

        Raises
        ------
        StoreError
            The collection does not exist.
        """
        with ExitStack() as opened:
            client = self._client
            if client is None:
                settings = self._chroma.config.Settings(anonymized_telemetry=False)
                client = opened.enter_context(self._chroma.PersistentClient(path=self._path or "", settings=settings))
            known = sorted(one.name for one in client.list_collections())
            if self._collection not in known:
                raise not_in_store("Chroma", "collection", self._collection, known)
            collection = client.get_collection(self._collection, embedding_function=None)  # it embeds nothing
            labels = {"title": self._title}
            yield passages_alone(partial(self._pages, collection), f"Chroma's {self._collection!r}", labels)

    def _pages(self, collection: Any) -> Iterator[list[Point]]:
        wanted = ["embeddings", "documents", "metadatas"]
        for first in range(0, collection.count(), PAGE):
            page = collection.get(include=wanted, limit=PAGE, offset=first)
            parts = (page["ids"], page["documents"], page["metadatas"], page["embeddings"])
            yield [self._point(*one) for one in zip(*parts, strict=True)]

    def _point(self, id: str, text: Any, metadata: Mapping[str, Any] | None, vector: Any) -> Point:
        kept = dict(metadata or {})
        return id, text, kept.pop(self._title, None), kept, vector


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> ChromaSource:
    """Return the source of ``chroma:PATH?title=headline``; the query of passages is the collection's name."""
    path, values = split_place(place, ("title",))
    return ChromaSource(path, collection=collection_of(place, queries), title=values.get("title", "title"))
