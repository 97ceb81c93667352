"""Ask a server of ``hopfuse serve`` from Python; extra ``client``."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import quote

import numpy as np

from .errors import EndpointError, InputError, MissingExtraError
from .recipes import Hit

__all__ = ["AsyncClient", "Client", "Found"]

#: Statuses whose fault is the request's.
FAULTS = (400, 404, 413, 415)
#: Seconds beyond a search's own timeout until a connection is given up.
GRACE = 1.0


@dataclass(frozen=True, eq=False)
class Found:
    """The rankings of a batch of questions: ``found[b]`` is a list of :class:`hopfuse.recipes.Hit`, best first.

    Attributes
    ----------
    hits : list of list of Hit
        ``row`` is -1: rows are the server's own.
    seq : int
        The state of the index that was searched.
    timings : mapping
        ``queued_ms``, ``batch`` and ``search_ms``.
    traces : list of dict, or None
        One per question where ``trace=True``.
    """

    hits: list[list[Hit]] = field(repr=False)
    seq: int
    timings: Mapping[str, float]
    traces: list[dict[str, Any]] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, query: int) -> list[Hit]:
        return self.hits[query]

    def __iter__(self) -> Iterator[list[Hit]]:
        return iter(self.hits)


@dataclass(frozen=True)
class _Send:
    """A request that is to be sent, within so many seconds; its answer is (status, headers, body)."""

    method: str
    path: str
    body: bytes | None
    seconds: float


@dataclass(frozen=True)
class _Wait:
    """Seconds to wait."""

    seconds: float


_Steps = Generator[_Send | _Wait, Any, Any]


class _Asking:
    """The requests of both clients, as steps without input or output."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, connections: int = 16) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InputError(f"url is {url!r}; give the server's address: http://localhost:8080")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 86400:
            raise InputError(f"timeout is {timeout!r}; it must be seconds, above 0")
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        self._url, self._timeout = url.rstrip("/"), float(timeout)
        limits = _httpx().Limits(max_connections=connections, max_keepalive_connections=connections)
        self._options: dict[str, Any] = {"base_url": self._url, "headers": headers, "limits": limits}

    def _search(self, queries: Any, *, timeout: float | None, **given: Any) -> _Steps:
        answer = yield from self._patiently("POST", "/v1/search", _body(queries, given), timeout)
        return _found(answer)

    def _add(self, passages: Any, *, timeout: float | None, **given: Any) -> _Steps:
        rows = [_with_vector(one) for one in passages]
        body = {name: value for name, value in given.items() if value is not None}
        if "entities" in body:
            body["entities"] = [_with_vector(one) if isinstance(one, Mapping) else one for one in body["entities"]]
        answer = yield from self._patiently("POST", "/v1/passages", {"passages": rows, **body}, timeout)
        return answer["seq"]

    def _delete(self, id: str | int, *, index: str | None, timeout: float | None) -> _Steps:
        of = "" if index is None else f"?index={quote(index)}"
        path = f"/v1/passages/{quote(str(id), safe='')}{of}"
        answer = yield from self._patiently("DELETE", path, None, timeout)
        return answer["seq"]

    def _patiently(self, method: str, path: str, body: dict[str, Any] | None, timeout: float | None) -> _Steps:
        """Return the JSON of an answer 200; what is refused at the door is sent again while the timeout lasts."""
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise EndpointError(f"{self._url} gave no answer in time; give a larger timeout")
            sent = None if body is None else json.dumps({**body, "timeout_ms": max(1, int(1000 * left))}).encode()
            status, headers, content = yield _Send(method, path, sent, left + GRACE)
            if status == 200:
                return json.loads(content)
            wait = headers.get("retry-after", "")
            if status not in (429, 503) or not wait.isdecimal() or time.monotonic() + int(wait) >= end:
                raise self._error(status, content)
            yield _Wait(int(wait))

    def _indexes(self) -> _Steps:
        status, _, content = yield _Send("GET", "/v1/indexes", None, self._timeout)
        if status != 200:
            raise self._error(status, content)
        return json.loads(content)["indexes"]

    def _error(self, status: int, content: bytes) -> Exception:
        """Return the error of an answer: InputError where the request has the fault."""
        try:
            message = str(json.loads(content)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            message = content[:200].decode("utf-8", "replace")
        if status in FAULTS:
            return InputError(message)
        return EndpointError(f"{self._url} answered {status}: {message}")

    def _lost(self, error: Exception) -> EndpointError:
        return EndpointError(f"{self._url} gave no answer: {error or type(error).__name__}; is hopfuse serve there?")


class Client(_Asking):
    """Ask a server; connections are kept and used again. Threads may share one.

    Parameters
    ----------
    url : str
        ``"http://localhost:8080"``.
    key : str, optional
        As ``hopfuse serve key`` made it.
    timeout : float
        Seconds of a search, with all that is tried again.
    connections : int
        At most so many at a time.

    Raises
    ------
    InputError
        An address or a timeout that is none.
    MissingExtraError
        httpx is not installed.

    Examples
    --------
    >>> from hopfuse.client import Client
    >>> with Client("http://localhost:8080") as client:
    ...     found = client.search(["Who directed Alien?"], k=3)  # doctest: +SKIP
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, connections: int = 16) -> None:
        super().__init__(url, key=key, timeout=timeout, connections=connections)
        self._http = _httpx().Client(**self._options)

    def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[str | int] | None] | None = None,
        allow: Any = None,
        k: int = 10,
        index: str | None = None,
        recipe: str | None = None,
        options: Mapping[str, Any] | None = None,
        trace: bool = False,
        fields: Sequence[str] = ("title", "text", "metadata"),
        at_least: int | None = None,
        timeout: float | None = None,
    ) -> Found:
        """Rank the passages for a batch of questions, as a recipe's ``search`` does.

        An answer 429 or 503 is tried again after the server's ``Retry-After``, if the timeout leaves time for it.

        Parameters
        ----------
        queries : sequence of str, optional
        vectors : array_like of float (B, d), optional
            By default the server's encoder makes them from the texts.
        entities : sequence of B sequences of str or int, optional
            None for a question: found in its text.
        allow : list of ids, mapping of conditions, or a sequence of B of those or None, optional
            ``{"tenant": "a", "year__ge": 2020}``: as of :func:`hopfuse.where`.
        k : int
        index, recipe, options : optional
            By default the server's own.
        trace : bool
            Say how each hit was found.
        fields : sequence of {"title", "text", "metadata"}
            What is sent of a passage; the others are empty.
        at_least : int, optional
            Wait for a state of this seq, as a change returned it.
        timeout : float, optional
            Seconds, in the place of the client's.

        Raises
        ------
        InputError
            What the server refuses as wrong, by field.
        EndpointError
            No answer in time, no server, or one that refuses the key.
        """
        found: Found = self._drive(
            self._search(
                queries,
                vectors=vectors,
                entities=entities,
                allow=allow,
                k=k,
                index=index,
                recipe=recipe,
                options=options,
                trace=trace,
                fields=fields,
                at_least=at_least,
                timeout=timeout,
            )
        )
        return found

    def add_passages(
        self,
        passages: Iterable[Mapping[str, Any]],
        *,
        entities: Sequence[str | Mapping[str, Any]] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        edges: Sequence[Mapping[str, Any]] | None = None,
        facts: Sequence[Sequence[Any]] | None = None,
        replace: bool = False,
        index: str | None = None,
        timeout: float | None = None,
    ) -> int:
        """Add passages, with what they state, and return the seq of the change once it is on the disk.

        Parameters
        ----------
        passages : iterable of mappings
            ``id`` and ``text``; optionally ``title``, ``metadata``, ``vector`` (array_like; by default the server's
            encoder makes it), ``entities`` (names, each joined to the passage) and ``facts`` (head, relation, tail).
        entities, aliases, edges, facts : optional
            As :class:`hopfuse.LiveIndex` takes them; entities that are there already stay.
        replace : bool
            Replace passages that have these ids; by default they are refused.
        index : str, optional
        timeout : float, optional

        Raises
        ------
        InputError
            What the server refuses as wrong; nothing is changed.
        EndpointError
            As of :meth:`search`, or the server only reads the index.
        """
        about: dict[str, Any] = {"edges": edges, "facts": facts, "replace": replace, "index": index}
        steps = self._add(passages, entities=entities, aliases=aliases, timeout=timeout, **about)
        return self._drive(steps)  # type: ignore[no-any-return]

    def delete_passage(self, id: str | int, *, index: str | None = None, timeout: float | None = None) -> int:
        """Delete a passage, with its edges and what it states, and return the seq of the change."""
        return self._drive(self._delete(id, index=index, timeout=timeout))  # type: ignore[no-any-return]

    def indexes(self) -> list[dict[str, Any]]:
        """Return what the server says of its indexes."""
        return self._drive(self._indexes())  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drive(self, steps: _Steps) -> Any:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(step, _Wait):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                sent = self._http.request(step.method, step.path, content=step.body, timeout=step.seconds)
            except _httpx().HTTPError as error:
                raise self._lost(error) from None
            answer = (sent.status_code, sent.headers, sent.content)


class AsyncClient(_Asking):
    """Ask a server from asyncio: as :class:`Client`, awaited.

    Parameters
    ----------
    url, key, timeout, connections
        As of :class:`Client`.

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
        super().__init__(url, key=key, timeout=timeout, connections=connections)
        self._http = _httpx().AsyncClient(**self._options)

    async def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[str | int] | None] | None = None,
        allow: Any = None,
        k: int = 10,
        index: str | None = None,
        recipe: str | None = None,
        options: Mapping[str, Any] | None = None,
        trace: bool = False,
        fields: Sequence[str] = ("title", "text", "metadata"),
        at_least: int | None = None,
        timeout: float | None = None,
    ) -> Found:
        """Rank the passages for a batch of questions: see :meth:`Client.search`."""
        found: Found = await self._drive(
            self._search(
                queries,
                vectors=vectors,
                entities=entities,
                allow=allow,
                k=k,
                index=index,
                recipe=recipe,
                options=options,
                trace=trace,
                fields=fields,
                at_least=at_least,
                timeout=timeout,
            )
        )
        return found

    async def add_passages(
        self,
        passages: Iterable[Mapping[str, Any]],
        *,
        entities: Sequence[str | Mapping[str, Any]] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        edges: Sequence[Mapping[str, Any]] | None = None,
        facts: Sequence[Sequence[Any]] | None = None,
        replace: bool = False,
        index: str | None = None,
        timeout: float | None = None,
    ) -> int:
        """Add passages: see :meth:`Client.add_passages`."""
        about: dict[str, Any] = {"edges": edges, "facts": facts, "replace": replace, "index": index}
        steps = self._add(passages, entities=entities, aliases=aliases, timeout=timeout, **about)
        return await self._drive(steps)  # type: ignore[no-any-return]

    async def delete_passage(self, id: str | int, *, index: str | None = None, timeout: float | None = None) -> int:
        """Delete a passage: see :meth:`Client.delete_passage`."""
        return await self._drive(self._delete(id, index=index, timeout=timeout))  # type: ignore[no-any-return]

    async def indexes(self) -> list[dict[str, Any]]:
        """Return what the server says of its indexes."""
        return await self._drive(self._indexes())  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _drive(self, steps: _Steps) -> Any:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(step, _Wait):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                sent = await self._http.request(step.method, step.path, content=step.body, timeout=step.seconds)
            except _httpx().HTTPError as error:
                raise self._lost(error) from None
            answer = (sent.status_code, sent.headers, sent.content)


def _httpx() -> Any:
    try:
        return import_module("httpx")
    except ModuleNotFoundError as error:
        raise MissingExtraError("httpx", "client", "hopfuse.client") from error


def _body(queries: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a search."""
    columns: dict[str, Sequence[Any] | None] = {
        "text": None if queries is None else _listed(queries, "queries"),
        "vector_base64": _encoded(given["vectors"]),
        "entities": None if given["entities"] is None else _listed(given["entities"], "entities"),
    }
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if not lengths or len(set(lengths.values())) != 1:
        raise InputError(f"there are {lengths or 'no questions'}; give queries, vectors and entities of one length")
    count = next(iter(lengths.values()))
    columns["allow"] = _allowed(given["allow"], count)
    rows = [
        {name: column[at] for name, column in columns.items() if column is not None and column[at] is not None}
        for at in range(count)
    ]
    body = {name: given[name] for name in ("index", "recipe", "options", "at_least") if given[name] is not None}
    return {"queries": rows, "k": given["k"], "trace": given["trace"], "fields": list(given["fields"]), **body}


def _with_vector(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a passage or an entity with its vector as bytes."""
    given = dict(row)
    vector = given.pop("vector", None)
    return given if vector is None else {**given, "vector_base64": (_encoded(vector) or [""])[0]}


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str):
        raise InputError(f"{name} is one text; for one question pass [{values!r:.80}]")
    return [list(one) if isinstance(one, tuple) else one for one in values]


def _encoded(vectors: Any) -> list[str] | None:
    if vectors is None:
        return None
    rows = np.atleast_2d(np.asarray(vectors, "<f4"))
    return [base64.b64encode(row.tobytes()).decode() for row in rows]


def _allowed(allow: Any, count: int) -> list[Any] | None:
    """Return a filter for each question."""
    if allow is None:
        return None
    is_one = isinstance(allow, Mapping) or not any(
        one is None or isinstance(one, list | tuple | Mapping) for one in allow
    )
    each = [allow] * count if is_one else list(allow)
    if len(each) != count:
        raise InputError(f"allow has {len(each)} filters for {count} questions; give one for each, or one for all")
    return [one if one is None or isinstance(one, Mapping) else list(one) for one in each]


def _found(answer: Any) -> Found:
    results = answer["results"]
    hits = [[_hit(one) for one in result["hits"]] for result in results]
    traced = bool(results) and "trace" in results[0]
    traces = [result["trace"] for result in results] if traced else None
    return Found(hits, answer["seq"], answer["timings"], traces)


def _hit(one: Any) -> Hit:
    return Hit(one["id"], -1, one["score"], one.get("title", ""), one.get("text", ""), one.get("metadata", {}))
