"""Search an index in this process or on a server, for the framework adapters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np

from .._validation import check_excludes, check_length, checked_texts, wrong_type
from ..client import AsyncClient, Client
from ..errors import HopfuseError, InputError
from ..index import Index, LiveIndex, Where, where
from ..index.live import AtLeast
from ..recipes import AllowScope, Hit
from ..retriever import Retriever

#: Questions in a request to a server: its ``limits.queries`` by default.
REQUEST = 256
#: The key of notes in the metadata of documents.
NOTES = "hopfuse_notes"

_log = logging.getLogger("hopfuse.adapters")


class QuestionHits(list[Hit]):
    """The hits of a question, best first, with notes about what was not known or not used of it.

    Attributes
    ----------
    notes : list of HopfuseError
        As in :class:`hopfuse.recipes.SearchResult`.
    """

    def __init__(self, hits: Iterable[Hit], notes: Sequence[HopfuseError]) -> None:
        super().__init__(hits)
        self.notes = list(notes)


class Searcher:
    """Searches an index in this process by a :class:`hopfuse.Retriever`, or by ``hopfuse serve``.

    Parameters
    ----------
    source : str, path, Index, LiveIndex or Retriever
        The URL of a server (``"http://localhost:8080"``), the directory of an index, or what a retriever is made of.
        A directory and a live index are searched with all that this process has committed; what others commit is read
        by :meth:`refresh`, or with ``at_least``.
    recipe : str, optional
        As of :class:`hopfuse.Retriever`, which chooses by default; a server uses its own default.
    options : mapping, optional
        Fields of the recipe's config, by default its own.
    strict : bool
        Raise what would be a note beside the hits.
    per_document : int, optional
        The largest number of hits of a document, as in :meth:`hopfuse.Retriever.search`.
    allow_scope : {"isolated", "results"}
        As in :meth:`hopfuse.Retriever.search`; a server supports only ``"isolated"``.
    index : str, optional
        Name of one of a server's indexes; by default its first.
    key : str, optional
        API key of a server.
    timeout : float, optional
        Seconds that a search by a server may take; by default 10.
    **arguments
        Other arguments of :class:`hopfuse.Retriever` for an index here, such as ``encoder`` and ``words``.

    Raises
    ------
    InputError
        ``source`` has another type, an argument does not apply to it, or questions need an encoder that is missing.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.searcher import Searcher
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> searcher = Searcher(hf.Index.build(passages=rows))
    >>> [hit.id for hit in searcher.search(["Who built the engine?"], k=1)[0]]
    ['b']
    """

    def __init__(
        self,
        source: Any,
        *,
        recipe: str | None = None,
        options: Mapping[str, Any] | None = None,
        strict: bool = False,
        per_document: int | None = None,
        allow_scope: AllowScope = "isolated",
        index: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
        **arguments: Any,
    ) -> None:
        self._retriever: Retriever | None = None
        #: The last seq that a store of this searcher's server committed, which searches have.
        self.written: int | None = None
        self._noted: set[tuple[str, str]] = set()
        self._settings: dict[str, Any] = {"per_document": per_document}
        if isinstance(source, str) and source.startswith(("http://", "https://")):
            scope = None if allow_scope == "isolated" else allow_scope
            refuse_settings({**arguments, "allow_scope": scope}, "a server's URL")
            limit = 10.0 if timeout is None else timeout
            self._about: dict[str, Any] = {"url": source, "key": key, "timeout": limit}
            self._settings |= {"index": index, "recipe": recipe, "options": options, "strict": strict or None}
            self._client = Client(**self._about)
            finalize(self, self._client.close)  # frameworks do not close their retrievers
            self._clients: dict[asyncio.AbstractEventLoop, tuple[AsyncGenerator[AsyncClient, None], AsyncClient]] = {}
            return
        refuse_settings({"index": index, "key": key, "timeout": timeout}, "not a server's URL")
        self._settings["allow_scope"] = allow_scope
        if isinstance(source, Retriever):
            own = {"recipe": recipe, "options": options, "strict": strict or None, **arguments}
            refuse_settings(own, "a Retriever")
            self._retriever = source
        else:
            fields = {"config": options} if "config" not in arguments else dict(options or {})
            self._retriever = _retriever_of(source, recipe, strict=strict, **arguments, **fields)
        if self._retriever.needs.vectors and self._retriever.encoder is None:
            self._retriever.search(["text"], k=1)  # raises why there is no encoder

    def search(
        self, questions: Sequence[str], *, k: int = 10, allow: Any = None, at_least: AtLeast = None
    ) -> list[QuestionHits]:
        """Rank the passages for a batch of questions, in one call.

        Parameters
        ----------
        questions : sequence of str, B entries
        k : int
            Hits per question.
        allow : mapping of conditions, or as of :meth:`hopfuse.Retriever.search`, or a sequence of B of those, optional
            Allowed passages: their ids, or conditions that must all hold, such as
            ``{"tenant": "a", "year__ge": 2020}`` (:func:`hopfuse.where`). A server takes ids and conditions.
        at_least : int or "latest", optional
            The seq of a change that must be searched, or all that any process has committed until now, as in
            :meth:`hopfuse.Retriever.search`. What this process has committed to an index here is always searched.

        Returns
        -------
        list of B QuestionHits

        Raises
        ------
        InputError
            ``questions`` is a single text, or the retriever or the server refuses an argument.
        EndpointError
            The server does not answer.
        """
        questions = checked_texts(questions, "questions")
        filters = _filters(allow, len(questions))
        if not questions:
            return []
        if self._retriever is not None:
            own = {"allow": _wheres(filters), "at_least": at_least, **self._settings}
            return _answers(self._retriever.search(questions, k=k, **own))
        served = self._served(k, at_least)
        return [
            one
            for part, allowed in _requests(questions, _conditions(filters))
            for one in _answers(self._client.search(part, allow=allowed, **served))
        ]

    async def asearch(
        self, questions: Sequence[str], *, k: int = 10, allow: Any = None, at_least: AtLeast = None
    ) -> list[QuestionHits]:
        """Search as :meth:`search` does: in a thread, or by a server over the event loop's connections."""
        questions = checked_texts(questions, "questions")
        if self._retriever is not None or not questions:
            return await asyncio.to_thread(self.search, questions, k=k, allow=allow, at_least=at_least)
        filters, served = _conditions(_filters(allow, len(questions))), self._served(k, at_least)
        client = await self._async_client()
        return [
            one
            for part, allowed in _requests(questions, filters)
            for one in _answers(await client.search(part, allow=allowed, **served))
        ]

    def _served(self, k: int, at_least: AtLeast) -> dict[str, Any]:
        """Return the settings of a search by a server, which has what its store has written."""
        if self.written is not None and not isinstance(at_least, str):
            at_least = max(self.written, at_least or 0)
        return {**self._settings, "k": k, "at_least": at_least}

    def refresh(self) -> None:
        """Read later changes of other processes to a directory or a live index; a server reads them by itself."""
        if self._retriever is not None:
            self._retriever.refresh()

    def log_notes(self, hits: QuestionHits) -> None:
        """Log a question's notes where a framework has no place for them: each kind of note once, as a warning."""
        for note in hits.notes:
            kind = note.code, str(note.field).partition("[")[0]
            if kind not in self._noted:
                self._noted.add(kind)
                _log.warning("%s; later notes of this kind are not logged", note)

    def __deepcopy__(self, _: Any) -> Searcher:
        """Return the searcher itself: frameworks copy their programs, and it is immutable and thread-safe."""
        return self

    async def _async_client(self) -> AsyncClient:
        """Return the client of the running event loop, which closes it when the loop shuts down."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for ended in [one for one in self._clients if one.is_closed()]:  # closed without a shutdown
                self._clients.pop(ended, None)
            opened = self._open_client(loop)
            self._clients[loop] = opened, await anext(opened)
        return self._clients[loop][1]

    async def _open_client(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[AsyncClient, None]:
        """Yield a client that stays open until the event loop shuts down its asynchronous generators."""
        async with AsyncClient(**self._about) as client:
            try:
                yield client
            finally:
                self._clients.pop(loop, None)


def as_searcher(source: Any) -> Searcher:
    """Return a Searcher as it is, or that of a store; or make one from any other source."""
    own = getattr(source, "searcher", source)
    return own if isinstance(own, Searcher) else Searcher(source)


def passage_metadata(hit: Hit) -> dict[str, Any]:
    """Return a hit's metadata with its title under ``"title"``, unless metadata has that name."""
    return ({"title": hit.title} if hit.title else {}) | hit.metadata


def note_metadata(hits: QuestionHits) -> dict[str, list[str]]:
    """Return a question's notes under :data:`NOTES` for the metadata of its documents; nothing without notes."""
    return {NOTES: [str(note) for note in hits.notes]} if hits.notes else {}


def _retriever_of(source: Any, recipe: str | None, **arguments: Any) -> Retriever:
    """Return a retriever over a directory or an index."""
    if isinstance(source, Index | LiveIndex):
        return Retriever(source, recipe, **arguments)
    if not isinstance(source, str | PathLike):
        raise wrong_type(
            source,
            "source",
            "a server's URL, the directory of an index, an Index, a LiveIndex or a Retriever; a recipe is named: "
            "Retriever(index, recipe=...)",
        )
    if isinstance(source, str) and not Path(source).exists():
        raise InputError(
            "missing",
            "source",
            "{field} is {given!r}, which does not exist; a server's URL begins with http:// or https://",
            given=source,
        )
    return Retriever.open(source, recipe, **arguments)


def _answers(found: Any) -> list[QuestionHits]:
    """Return the hits and notes of each question."""
    return [QuestionHits(hits, notes) for hits, notes in zip(found, found.notes, strict=True)]


def _filters(allow: Any, count: int) -> Any:
    """Return one filter for all questions, or a list of one for each."""
    if allow is None or isinstance(allow, str | Mapping | Where):
        return allow
    if isinstance(allow, np.ndarray) and allow.ndim == 1:
        return allow
    listed = list(allow)
    if not any(one is None or isinstance(one, list | tuple | Mapping | Where | np.ndarray) for one in listed):
        return tuple(listed)
    check_length(len(listed), "allow", count, "question")
    return listed


def filter_of(allow: Any, at: int, count: int) -> Any:
    """Return the filter of one of ``count`` questions that are searched with ``allow``."""
    filters = _filters(allow, count)
    return [filters[at]] if isinstance(filters, list) else filters


def _requests(questions: list[str], filters: Any) -> Iterator[tuple[list[str], Any]]:
    """Yield the questions and filters of each request, as many as a server takes by default."""
    for start in range(0, len(questions), REQUEST):
        own = slice(start, start + REQUEST)
        yield questions[own], filters[own] if isinstance(filters, list) else filters


def _conditions(filters: Any) -> Any:
    """Return filters, one or a list with one for each question, in the form that a server accepts."""
    each = [_served_filter(one) for one in (filters if isinstance(filters, list) else [filters])]
    return each if isinstance(filters, list) else each[0]


def _served_filter(filter: Any) -> Any:
    if isinstance(filter, str):
        raise wrong_type(filter, "allow", "a list of ids: [id]")
    return conditions_of(filter) if isinstance(filter, Where) else filter


def conditions_of(filter: Where) -> dict[str, Any]:
    """Return a filter as the conditions that a server accepts; refuse one that they cannot express."""
    found = filter.conditions()
    if found is None:
        raise InputError(
            "unsupported",
            "allow",
            "{field} is {given}; a server accepts only {allowed}",
            given=filter,
            allowed='ids, or conditions that must all hold: {"tenant": "a", "year__ge": 2020}',
        )
    return found


def _wheres(filters: Any) -> Any:
    """Return filters in the form that a retriever accepts."""
    if isinstance(filters, list):
        return [_wheres(one) for one in filters]
    return where(**filters) if isinstance(filters, Mapping) else filters


def refuse_settings(given: Mapping[str, Any], source: str) -> None:
    """Raise if a setting is given that a source of this kind does not take."""
    for name, value in given.items():
        check_excludes(name, value, "source", source, f"which is {source}")


# ---- Filters of other frameworks -------------------------------------------------------------------------------------


Filter = Mapping[str, Any] | Where


def condition(column: str, operator: str, value: Any) -> Filter:
    """Return a condition on a column. Missing values meet ``ne`` and ``nin``, as in the frameworks.

    Examples
    --------
    >>> condition("year", "ge", 2020)
    {'year__ge': 2020}
    >>> condition("year", "ne", 2020)
    ~where(year=2020)
    """
    if operator == "ne":
        return ~where(**{column: value})
    if operator == "nin":
        return ~where(**{f"{column}__in": value})
    return {f"{column}__{operator}": value}


def joined(parts: Sequence[Filter], how: Literal["and", "or"]) -> Filter:
    """Return the conjunction or the disjunction of filters, as a mapping if that can express it.

    Examples
    --------
    >>> joined([{"year__ge": 2020}, {"tenant__eq": "a"}], "and")
    {'year__ge': 2020, 'tenant__eq': 'a'}
    >>> joined([{"year__ge": 2020}, {"tenant__eq": "a"}], "or")
    (where(year__ge=2020) | where(tenant='a'))
    """
    mappings = [part for part in parts if isinstance(part, Mapping)]
    names = [name for part in mappings for name in part]
    if len(mappings) == len(parts) and (how == "and" or len(parts) == 1) and len(set(names)) == len(names):
        return {name: value for part in mappings for name, value in part.items()}
    return reduce(and_ if how == "and" else or_, map(as_where, parts))


def as_where(part: Filter) -> Where:
    """Return a filter as a Where."""
    return part if isinstance(part, Where) else where(**part)
