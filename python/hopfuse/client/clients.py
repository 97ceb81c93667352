"""The clients over httpx: blocking, and for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from .._validation import import_extra
from .results import Deletions, Found, FoundIds, Passage, PassagesPage
from .steps import (
    ChangeOptions,
    DeletionOptions,
    ReadOptions,
    Requests,
    ScrollOptions,
    SearchOptions,
    Steps,
    VectorSearchOptions,
    Wait,
)


class Client:
    """A client of ``hopfuse serve``, which keeps its connections. Threads may share it.

    Parameters
    ----------
    url : str
        ``"http://localhost:8080"``.
    key : str, optional
        A key made by ``hopfuse serve key``.
    timeout : float
        Seconds that a request may take, including retries.
    connections : int
        Most connections at a time.

    Raises
    ------
    InputError
        The URL or the timeout is invalid.
    MissingExtraError
        httpx is not installed.

    Examples
    --------
    >>> from hopfuse.client import Client
    >>> with Client("http://localhost:8080") as client:
    ...     found = client.search(["Who directed Alien?"], k=3)  # doctest: +SKIP
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, connections: int = 16) -> None:
        self._requests = Requests(url, timeout, has_key=key is not None)
        self._http = _httpx().Client(**_options(self._requests.url, key, connections))

    def search(self, queries: str | Sequence[str] | None = None, **asked: Unpack[SearchOptions]) -> Found:
        """Rank the passages for a batch of questions, as a recipe's ``search`` does.

        After a response 429 or 503 the request is sent again once ``Retry-After`` has passed, if the timeout allows.

        Parameters
        ----------
        queries : str or sequence of str, optional
            One question is a batch of one.
        vectors : array_like of float (B, d), optional
            By default the server encodes the texts.
        entities : sequence of B sequences of str or int, optional
            None for a question whose text has them.
        allow : list of ids, mapping of conditions, or a sequence of B of those or None, optional
            Allowed passages; conditions as for :func:`hopfuse.where`: ``{"tenant": "a", "year__ge": 2020}``.
        k : int
            10 by default.
        index, recipe, options : optional
            By default the server's.
        per_document : int, optional
            The largest number of hits of a document; passages of equal text count as one.
        strict : bool, optional
            Raise what would be a note of a result.
        trace : bool
            Explain how each hit was found.
        fields : sequence of {"title", "text", "metadata"}
            Fields of passages to return, by default all; the others are empty.
        at : datetime, str, int or float, optional
            Search the passages that are valid at this time (:meth:`hopfuse.Index.valid_at`).
        at_least : int or "latest", optional
            Wait until the index has this seq, which a change returned; or what any process has committed until now.
        timeout : float, optional
            Seconds, instead of the client's.

        Raises
        ------
        InputError
            The server refuses a field.
        EndpointError
            There is no answer in time, no server, or the server refuses the key.
        """
        found: Found = self._drive(self._requests.search(queries, **asked))
        return found

    def search_vectors(self, vectors: Any, **asked: Unpack[VectorSearchOptions]) -> FoundIds:
        """Rank the passages for a batch of vectors: ids and scores, as arrays.

        Vectors and answer are Arrow streams if pyarrow is installed on both sides (extra ``arrow``), and JSON otherwise
        or if a column would have values of several types. The answer is the same.

        Parameters
        ----------
        vectors : array_like of float (B, d)
        entities : sequence of B sequences of str or int, optional
            Recipes that walk need them; ``[[]] * B`` for none.
        allow, k, index, recipe, options, per_document, strict, at, at_least, timeout : optional
            As in :meth:`search`.

        Raises
        ------
        InputError, EndpointError
            As in :meth:`search`.
        """
        found: FoundIds = self._drive(self._requests.search_vectors(vectors, **asked))
        return found

    def add_passages(self, passages: Iterable[Mapping[str, Any]], **given: Unpack[ChangeOptions]) -> int:
        """Add passages with their entities and facts, and return the seq of the change once it is on the disk.

        Parameters
        ----------
        passages : iterable of mappings
            ``id`` and ``text``; optionally ``title``, ``document``, ``language``, ``metadata``, ``vector`` (array_like;
            by default the server encodes the text), ``entities`` (names, each joined to the passage) and ``facts``
            (head, relation, tail).
        entities, aliases, merge, edges, facts : optional
            As for :class:`hopfuse.LiveIndex`; existing entities stay, in whatever spelling. ``merge`` has the names of
            entities to merge into another, by its name.
        replace : bool
            Replace existing passages with these ids; by default they are an error.
        index : str, optional
        timeout : float, optional

        Raises
        ------
        InputError
            The server refuses a field; nothing is changed.
        EndpointError
            As in :meth:`search`, or the server only reads the index.
        """
        seq: int = self._drive(self._requests.add_passages(passages, **given))
        return seq

    def delete_passage(self, id: str | int, *, index: str | None = None, timeout: float | None = None) -> int:
        """Delete a passage with its edges and facts, and return the seq of the change."""
        seq: int = self._drive(self._requests.delete_passage(id, index=index, timeout=timeout))
        return seq

    def delete_passages(self, ids: Iterable[str | int] | None = None, **given: Unpack[DeletionOptions]) -> Deletions:
        """Delete passages by their ids, by conditions or by document, and return what that deletes.

        Names and words that were read in passages go with the last of them. A key with a filter deletes only passages
        that it sees, and counts what those it sees no longer have.

        Parameters
        ----------
        ids : iterable of str or int, optional
            All must exist.
        where : mapping, optional
            Conditions as for :func:`hopfuse.where`: ``{"tenant": "a", "year__ge": 2020}``.
        document : str or int, optional
            Delete the passages of this document.
        dry_run : bool
            Count what would be deleted, and change nothing.
        index : str, optional
        timeout : float, optional

        Raises
        ------
        InputError
            None or several of ids, where and document are given, or the server refuses one; nothing is changed.
        EndpointError
            As in :meth:`search`, or the server only reads the index.

        Examples
        --------
        >>> from hopfuse.client import Client
        >>> with Client("http://localhost:8080") as client:
        ...     counts = client.delete_passages(where={"user": "ada"}, dry_run=True)  # doctest: +SKIP
        """
        deleted: Deletions = self._drive(self._requests.delete_passages(ids, **given))
        return deleted

    def passage(self, id: str | int, **where: Unpack[ReadOptions]) -> Passage:
        """Read a passage.

        Parameters
        ----------
        id : str or int
        index : str, optional
            By default the server's first.
        at_least : int or "latest", optional
            Wait until the index has this seq, which a change returned; or what any process has committed until now.
        timeout : float, optional
            Seconds, instead of the client's.

        Raises
        ------
        InputError
            No passage has the id, or the key's filter hides it (the code is ``unknown``). Or the server refuses a
            parameter.
        EndpointError
            As in :meth:`search`.

        Examples
        --------
        >>> from hopfuse.client import Client
        >>> with Client("http://localhost:8080") as client:
        ...     text = client.passage("p7")["text"]  # doctest: +SKIP
        """
        found: Passage = self._drive(self._requests.passage(id, **where))
        return found

    def passages(self, **where: Unpack[ScrollOptions]) -> Iterator[PassagesPage]:
        """Read the passages that the key sees, page by page, in ascending order of their ids.

        Each page shows the index as it is when the page is read. What is neither added nor deleted meanwhile is read
        once.

        Parameters
        ----------
        after : str or int, optional
            Begin after this id, such as the ``after`` of a page.
        limit : int, optional
            Most passages of a page, by default 100. Pages end earlier if their texts are long.
        index, at_least, timeout : optional
            As in :meth:`passage`, for each page.

        Yields
        ------
        PassagesPage

        Raises
        ------
        InputError, EndpointError
            As in :meth:`passage`.

        Examples
        --------
        >>> from hopfuse.client import Client
        >>> with Client("http://localhost:8080") as client:
        ...     ids = [one["id"] for page in client.passages() for one in page]  # doctest: +SKIP
        """
        goes_on = True
        while goes_on:
            page: PassagesPage = self._drive(self._requests.page(**where))
            yield page
            where["after"] = page.after
            goes_on = page.after is not None

    def indexes(self) -> list[dict[str, Any]]:
        """Return the server's description of its indexes."""
        listed: list[dict[str, Any]] = self._drive(self._requests.indexes())
        return listed

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drive(self, steps: Steps) -> Any:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(step, Wait):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                sent = self._http.request(**step.arguments)
            except _httpx().HTTPError as error:
                late = isinstance(error, _httpx().TimeoutException)
                raise self._requests.lost(step, error, late=late) from None
            answer = (sent.status_code, sent.headers, sent.content)


class AsyncClient:
    """A client for asyncio, with the methods of :class:`Client`.

    Parameters
    ----------
    url, key, timeout, connections
        As in :class:`Client`.

    Examples
    --------
    >>> import asyncio
    >>> from hopfuse.client import AsyncClient
    >>> async def ask():
    ...     async with AsyncClient("http://localhost:8080") as client:
    ...         return await client.search(["Who directed Alien?"])
    >>> asyncio.run(ask())  # doctest: +SKIP
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, connections: int = 16) -> None:
        self._requests = Requests(url, timeout, has_key=key is not None)
        self._http = _httpx().AsyncClient(**_options(self._requests.url, key, connections))

    async def search(self, queries: str | Sequence[str] | None = None, **asked: Unpack[SearchOptions]) -> Found:
        """Rank the passages for a batch of questions: see :meth:`Client.search`."""
        found: Found = await self._drive(self._requests.search(queries, **asked))
        return found

    async def search_vectors(self, vectors: Any, **asked: Unpack[VectorSearchOptions]) -> FoundIds:
        """Rank the passages for a batch of vectors: see :meth:`Client.search_vectors`."""
        found: FoundIds = await self._drive(self._requests.search_vectors(vectors, **asked))
        return found

    async def add_passages(self, passages: Iterable[Mapping[str, Any]], **given: Unpack[ChangeOptions]) -> int:
        """Add passages: see :meth:`Client.add_passages`."""
        seq: int = await self._drive(self._requests.add_passages(passages, **given))
        return seq

    async def delete_passage(self, id: str | int, *, index: str | None = None, timeout: float | None = None) -> int:
        """Delete a passage: see :meth:`Client.delete_passage`."""
        seq: int = await self._drive(self._requests.delete_passage(id, index=index, timeout=timeout))
        return seq

    async def delete_passages(
        self, ids: Iterable[str | int] | None = None, **given: Unpack[DeletionOptions]
    ) -> Deletions:
        """Delete passages by ids, conditions or document: see :meth:`Client.delete_passages`."""
        deleted: Deletions = await self._drive(self._requests.delete_passages(ids, **given))
        return deleted

    async def passage(self, id: str | int, **where: Unpack[ReadOptions]) -> Passage:
        """Read a passage: see :meth:`Client.passage`."""
        found: Passage = await self._drive(self._requests.passage(id, **where))
        return found

    async def passages(self, **where: Unpack[ScrollOptions]) -> AsyncIterator[PassagesPage]:
        """Read passages page by page, with ``async for``: see :meth:`Client.passages`."""
        goes_on = True
        while goes_on:
            page: PassagesPage = await self._drive(self._requests.page(**where))
            yield page
            where["after"] = page.after
            goes_on = page.after is not None

    async def indexes(self) -> list[dict[str, Any]]:
        """Return the server's description of its indexes."""
        listed: list[dict[str, Any]] = await self._drive(self._requests.indexes())
        return listed

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _drive(self, steps: Steps) -> Any:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                sent = await self._http.request(**step.arguments)
            except _httpx().HTTPError as error:
                late = isinstance(error, _httpx().TimeoutException)
                raise self._requests.lost(step, error, late=late) from None
            answer = (sent.status_code, sent.headers, sent.content)


def _options(url: str, key: str | None, connections: int) -> dict[str, Any]:
    """Return the options of httpx's clients."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    limits = _httpx().Limits(max_connections=connections, max_keepalive_connections=connections)
    return {"base_url": url, "headers": headers, "limits": limits}


def _httpx() -> Any:
    return import_extra("httpx", "hopfuse.client")
