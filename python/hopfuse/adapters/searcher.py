"""Search an index in this process or on a server, for the framework adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_excludes, check_length, checked_texts, wrong_type
from ..client import AsyncClient, Client
from ..encoders import Encoder, WordLlamaEncoder
from ..errors import InputError
from ..extract import QuestionMatcher
from ..index import Index, Where, where
from ..lexical import BM25, FTS5, words_of
from ..recipes import RECIPES, AllowScope, Hit, Recipe

#: Questions in a request to a server: its ``limits.queries`` by default.
REQUEST = 256


class Searcher:
    """Searches an index by a recipe in this process, or by ``hopfuse serve``.

    Parameters
    ----------
    source : str, path, Index or recipe
        The URL of a server (``"http://localhost:8080"``), the directory of an index, an index, or a recipe that can
        search texts.
    recipe : str, optional
        A key of :data:`hopfuse.recipes.RECIPES`; by default guided-walk if the index supports it, else hybrid-rrf. A
        server uses its own default.
    options : mapping, optional
        Fields of the recipe's config, by default its own.
    encoder : Encoder, optional
        Encoder of questions for a local index; by default the index's own, if that is WordLlama.
    allow_scope : {"isolated", "results"}
        As in :meth:`hopfuse.recipes.Recipe.search`; a server supports only ``"isolated"``.
    index : str, optional
        Name of one of a server's indexes; by default its first.
    key : str, optional
        API key of a server.
    timeout : float, optional
        Seconds that a search by a server may take; by default 10.

    Raises
    ------
    InputError
        ``source`` has another type, or an argument does not apply to it.

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
        encoder: Any = None,
        allow_scope: AllowScope = "isolated",
        index: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self._scope: AllowScope = allow_scope
        here = {"encoder": encoder, "allow_scope": None if allow_scope == "isolated" else allow_scope}
        there = {"index": index, "key": key, "timeout": timeout}
        self._recipe: Recipe | None = None
        if isinstance(source, str) and source.startswith(("http://", "https://")):
            refuse_settings(here, "a server's URL")
            limit = 10.0 if timeout is None else timeout
            self._about: dict[str, Any] = {"url": source, "key": key, "timeout": limit}
            self._settings: dict[str, Any] = {"index": index, "recipe": recipe, "options": options}
            self._client = Client(**self._about)
            finalize(self, self._client.close)  # frameworks do not close their retrievers
            self._clients: dict[asyncio.AbstractEventLoop, tuple[AsyncGenerator[AsyncClient, None], AsyncClient]] = {}
            return
        refuse_settings(there, "not a server's URL")
        if isinstance(source, str) and not Path(source).exists():
            raise InputError(
                "missing",
                "source",
                "{field} is {given!r}, which does not exist; a server's URL begins with http:// or https://",
                given=source,
            )
        if isinstance(source, str | PathLike):
            source = Index.open(source)
        if isinstance(source, Index):
            self._recipe = local_recipe(source, recipe, options, encoder)
        elif callable(getattr(source, "search", None)) and isinstance(getattr(source, "index", None), Index):
            refuse_settings({"recipe": recipe, "options": options, "encoder": encoder}, "a recipe")
            self._recipe = source
        else:
            raise wrong_type(source, "source", "a server's URL, the directory of an index, an Index or a recipe")

    def search(self, questions: Sequence[str], *, k: int = 10, allow: Any = None) -> list[list[Hit]]:
        """Rank the passages for a batch of questions, in one call.

        Parameters
        ----------
        questions : sequence of str, B entries
        k : int
            Hits per question.
        allow : ids, mapping of conditions, Where, or a sequence of B of those or None, optional
            Allowed passages: their ids, or conditions that must all hold, such as
            ``{"tenant": "a", "year__ge": 2020}`` (:func:`hopfuse.where`). A server does not take a Where.

        Returns
        -------
        list of B lists of Hit, best first

        Raises
        ------
        InputError
            ``questions`` is a single text, or the recipe or the server refuses an argument.
        EndpointError
            The server does not answer.
        """
        questions = checked_texts(questions, "questions")
        filters = _filters(allow, len(questions))
        if not questions:
            return []
        if self._recipe is None:
            filters = _conditions(filters)
            return [
                hits
                for part, allowed in _requests(questions, filters)
                for hits in self._client.search(part, k=k, allow=allowed, **self._settings)
            ]
        allowed = _masks(filters, self._recipe.index)
        return list(self._recipe.search(questions, k=k, allow=allowed, allow_scope=self._scope))

    async def asearch(self, questions: Sequence[str], *, k: int = 10, allow: Any = None) -> list[list[Hit]]:
        """Search as :meth:`search` does: by a recipe in a thread, or by a server over the event loop's connections."""
        questions = checked_texts(questions, "questions")
        if self._recipe is not None or not questions:
            return await asyncio.to_thread(self.search, questions, k=k, allow=allow)
        filters = _conditions(_filters(allow, len(questions)))
        client = await self._async_client()
        return [
            hits
            for part, allowed in _requests(questions, filters)
            for hits in await client.search(part, k=k, allow=allowed, **self._settings)
        ]

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
    """Return a Searcher as it is, or make one from any other source."""
    return source if isinstance(source, Searcher) else Searcher(source)


def passage_metadata(hit: Hit) -> dict[str, Any]:
    """Return a hit's metadata with its title under ``"title"``, unless metadata has that name."""
    return ({"title": hit.title} if hit.title else {}) | hit.metadata


def local_recipe(index: Index, name: str | None, options: Mapping[str, Any] | None, encoder: Any) -> Recipe:
    """Return a recipe over an index, with the index's own encoder, matcher and lexical leg."""
    name = name or ("hybrid-rrf" if RECIPES["guided-walk"].missing(index) else "guided-walk")
    check_choice(name, "recipe", RECIPES)
    kind: Any = RECIPES[name]
    parts = {
        "encoder": _own_encoder(index) if encoder is None else encoder,
        "matcher": QuestionMatcher(index) if index.graph is not None else None,
        "lexical": _words(index) if name == "hybrid-rrf" else None,
    }
    takes = signature(kind).parameters
    made: Recipe = kind(index, **{part: value for part, value in parts.items() if part in takes}, **(options or {}))
    return made


def _own_encoder(index: Index) -> Encoder | None:
    """Return the encoder of an index's vectors, None if there are none; refuse an unknown encoder."""
    built = index.encoder
    if index.corpus is None:
        return None
    if built is None or built.name != "wordllama":
        named = "an unnamed encoder" if built is None else f"the encoder {built.name}"
        raise InputError(
            "missing",
            "encoder",
            "{field} is missing, and the vectors of the index were made by {made_by}; give it: Searcher(source, "
            "encoder=...)",
            made_by=named,
        )
    return WordLlamaEncoder(built.dim, normalize=built.normalize)


def _words(index: Index) -> BM25 | FTS5 | None:
    """Return the index's own BM25; without one, and if guided-walk is not possible, a leg over its texts."""
    if index.lexical is None and not RECIPES["guided-walk"].missing(index):
        return None
    return words_of(index)


def _filters(allow: Any, count: int) -> Any:
    """Return one filter for all questions, or a list of one for each."""
    if allow is None or isinstance(allow, Mapping | Where):
        return allow
    if isinstance(allow, str):
        raise wrong_type(allow, "allow", "a list of ids: [id]")
    listed = list(allow)
    if not any(one is None or isinstance(one, list | tuple | Mapping | Where) for one in listed):
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
    """Return filters in the form that a server accepts."""
    for one in filters if isinstance(filters, list) else [filters]:
        if isinstance(one, Where):
            raise InputError(
                "unsupported",
                "allow",
                "{field} is {given}; a server accepts only {allowed}",
                given=one,
                allowed='ids, or conditions that must all hold: {"tenant": "a", "year__ge": 2020}',
            )
    return filters


def _masks(filters: Any, index: Index) -> Any:
    """Return filters as masks for a recipe."""
    if isinstance(filters, list):
        return [np.ones(index.num_passages, np.bool_) if one is None else _mask(one, index) for one in filters]
    return None if filters is None else _mask(filters, index)


def _mask(one: Any, index: Index) -> NDArray[np.bool_]:
    return index.mask(where(**one) if isinstance(one, Mapping) else one)


def refuse_settings(given: Mapping[str, Any], source: str) -> None:
    """Raise if a setting is given that a source of this kind does not take."""
    for name, value in given.items():
        check_excludes(name, value, "source", source, f"which is {source}")
