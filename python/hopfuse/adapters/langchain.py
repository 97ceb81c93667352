"""A LangChain retriever and encoder; a batch of questions is one search."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any

from ..encoders.protocol import NamedEncoder
from ..errors import InputError, MissingExtraError
from .searcher import QuestionHits, Searcher, as_searcher, filter_of, note_metadata, passage_metadata

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables.config import get_config_list
    from pydantic import PrivateAttr, model_validator
except ModuleNotFoundError as _error:
    raise MissingExtraError("langchain-core", "langchain", "hopfuse.adapters.langchain") from _error

Rows = list[QuestionHits]


class HopfuseRetriever(BaseRetriever):
    """A LangChain retriever over an index here or over ``hopfuse serve``.

    ``invoke``, ``ainvoke``, ``batch`` and ``abatch`` take ``k=`` and ``allow=`` to override the retriever's. A batch
    is one search, whatever ``max_concurrency`` is, so its questions share kernel calls. Callbacks see one run per
    question.

    Attributes
    ----------
    source : str, path, Index, LiveIndex, Retriever or Searcher
        The URL of a server, or what a :class:`.searcher.Searcher` searches here. To give an encoder, a recipe or a
        server's key, pass a Searcher.
    k : int
        Documents for each question.
    allow : ids, mapping of conditions, or Where, optional
        Passages that may be found, as in :meth:`.searcher.Searcher.search`; a batch also takes one for each question.
    score_key : str
        Key of the score in a document's metadata. A document has the passage's ``id`` as a string, its text, and its
        metadata with the title. Notes about the question are a list of str under ``hopfuse_notes``; if there is no
        document, they are logged as warnings.

    Raises
    ------
    InputError
        ``source`` is not one of the above, or the retriever or the server refuses an argument.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.langchain import HopfuseRetriever
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> retriever = HopfuseRetriever(source=hf.Index.build(passages=rows), k=1)
    >>> [document.page_content for document in retriever.invoke("Who built the engine?")]
    ['Babbage built the engine.']
    """

    source: Any
    k: int = 10
    allow: Any = None
    score_key: str = "score"

    _searcher: Searcher = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        if isinstance(given, dict):
            _refuse_others(
                given,
                "HopfuseRetriever, whose recipe, encoder or key stand in source=Searcher(...)",
                cls.model_fields,
            )
        return given

    def model_post_init(self, context: Any) -> None:
        """Open the index, or connect to the server."""
        super().model_post_init(context)
        self._searcher = as_searcher(self.source)

    def refresh(self) -> None:
        """Read later changes of the index, if it is here; a server reads them by itself."""
        self._searcher.refresh()

    def batch(self, inputs: list[str], config: Any = None, *, return_exceptions: bool = False, **given: Any) -> Any:
        """Return the documents of each question, all found by one search.

        If that is refused and ``return_exceptions`` is True, each question is searched alone and has its own error.
        """
        questions, answers, settings = list(inputs), [], self._settings(**given)
        found: Future[Rows] = Future()

        def take(at: int) -> QuestionHits:
            """Return the hits of a question; the first call searches for all questions."""
            if not found.done():
                try:
                    found.set_result(self._searcher.search(questions, **settings))
                except Exception as error:
                    found.set_exception(error)
            if return_exceptions and isinstance(found.exception(), InputError):
                return self._searcher.search([questions[at]], **_alone(settings, at, len(questions)))[0]
            return found.result()[at]

        for at, (question, one) in enumerate(zip(questions, get_config_list(config, len(questions)), strict=True)):
            try:
                answers.append(self.invoke(question, one, take=partial(take, at)))
            except Exception as error:
                if not return_exceptions:
                    raise
                answers.append(error)
        return answers

    async def abatch(
        self, inputs: list[str], config: Any = None, *, return_exceptions: bool = False, **given: Any
    ) -> Any:
        """Return the documents of each question, as :meth:`batch` does."""
        questions, settings = list(inputs), self._settings(**given)
        found = asyncio.ensure_future(self._searcher.asearch(questions, **settings))

        async def take(at: int) -> QuestionHits:
            try:
                return (await found)[at]
            except InputError:
                if not return_exceptions:
                    raise
                alone = _alone(settings, at, len(questions))
                return (await self._searcher.asearch([questions[at]], **alone))[0]

        configs = get_config_list(config, len(questions))
        runs = [self.ainvoke(one, configs[at], take=partial(take, at)) for at, one in enumerate(questions)]
        return await asyncio.gather(*runs, return_exceptions=return_exceptions)

    def _settings(self, k: int | None = None, allow: Any = None, **unknown: Any) -> dict[str, Any]:
        _refuse_others(unknown, "a search", ("k", "allow"))
        return {"k": self.k if k is None else k, "allow": self.allow if allow is None else allow}

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, take: Callable[[], QuestionHits] | None = None, **given: Any
    ) -> list[Document]:
        hits = self._searcher.search([query], **self._settings(**given))[0] if take is None else take()
        return self._documents(hits)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, take: Callable[[], Awaitable[QuestionHits]] | None = None, **given: Any
    ) -> list[Document]:
        hits = (await self._searcher.asearch([query], **self._settings(**given)))[0] if take is None else await take()
        return self._documents(hits)

    def _documents(self, hits: QuestionHits) -> list[Document]:
        if not hits:
            self._searcher.log_notes(hits)
        notes = note_metadata(hits)
        abouts = [{**passage_metadata(hit), self.score_key: hit.score, **notes} for hit in hits]
        return [
            Document(id=str(hit.id), page_content=hit.text, metadata=about)
            for hit, about in zip(hits, abouts, strict=True)
        ]


def _alone(settings: dict[str, Any], at: int, count: int) -> dict[str, Any]:
    """Return the settings of a batch for one of its questions."""
    return settings | {"allow": filter_of(settings["allow"], at, count)}


class LangChainEncoder(NamedEncoder):
    """A LangChain embedding model as an encoder of questions and passages.

    Questions are encoded one by one by ``embed_query``, passages in one call of ``embed_documents``.

    Parameters
    ----------
    embeddings : Embeddings
    dim : int, optional
        By default the length of the vector of a text.
    name : str, optional
        By default the ``model`` or ``model_name`` of ``embeddings``, else the name of its class.
    normalize : bool
        Scale every row to length 1, in float64, and round to float32.

    Examples
    --------
    >>> from hopfuse.adapters.langchain import LangChainEncoder
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> LangChainEncoder(DeterministicFakeEmbedding(size=4)).encode_queries(["who?"]).shape
    (1, 4)
    """

    def __init__(
        self, embeddings: Embeddings, *, dim: int | None = None, name: str | None = None, normalize: bool = True
    ) -> None:
        self._model = embeddings
        named = (getattr(embeddings, field, None) for field in ("model", "model_name"))
        model = next((one for one in named if isinstance(one, str)), type(embeddings).__name__)
        width = len(embeddings.embed_query("dimension")) if dim is None else dim
        super().__init__(name or f"langchain/{model}", width, normalize)

    def _vectors(self, texts: list[str], of_passages: bool) -> list[list[float]]:
        return self._model.embed_documents(texts) if of_passages else [self._model.embed_query(text) for text in texts]


def _refuse_others(given: Iterable[str], what: str, allowed: Iterable[str]) -> None:
    for name in sorted(set(given) - set(allowed)):
        raise InputError(
            "unknown",
            name,
            "{field} is not an argument of {what}; allowed: {allowed}",
            what=what,
            allowed=", ".join(allowed),
        )
