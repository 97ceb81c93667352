"""A LangChain retriever, vector store and encoder; a batch of questions is one search."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import repeat
from typing import Any
from uuid import uuid4

from .._validation import check_excludes, check_length, checked_texts
from ..encoders.protocol import NamedEncoder
from ..errors import InputError, MissingExtraError
from ..index.live import AtLeast
from .searcher import Filter, QuestionHits, Searcher, as_searcher, filter_of, note_metadata, passage_metadata
from .store import open_store

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables.config import get_config_list
    from langchain_core.vectorstores import VectorStore
    from pydantic import PrivateAttr, model_validator
except ModuleNotFoundError as _error:
    raise MissingExtraError("langchain-core", "langchain", "hopfuse.adapters.langchain") from _error

Rows = list[QuestionHits]


class HopfuseRetriever(BaseRetriever):
    """A LangChain retriever over an index here or over ``hopfuse serve``.

    ``invoke``, ``ainvoke``, ``batch`` and ``abatch`` take ``k=``, ``allow=`` and ``at_least=`` to override the
    retriever's. A batch is one search, whatever ``max_concurrency`` is, so its questions share kernel calls. Callbacks
    see one run per question.

    Attributes
    ----------
    source : str, path, Index, LiveIndex, Retriever, Searcher or HopfuseVectorStore
        The URL of a server, or what a :class:`.searcher.Searcher` searches here. To give an encoder, a recipe or a
        server's key, pass a Searcher.
    k : int
        Documents for each question.
    allow : ids, mapping of conditions, or Where, optional
        Passages that may be found, as in :meth:`.searcher.Searcher.search`; a batch also takes one for each question.
    at_least : int or "latest", optional
        The seq of a change that must be searched, or ``"latest"`` for all that other processes have committed; what
        this process has committed to an index here is always searched.
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
    at_least: int | str | None = None
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
        """Read later changes of other processes, if the index is here; a server reads them by itself."""
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

    def _settings(
        self, k: int | None = None, allow: Any = None, at_least: AtLeast = None, **unknown: Any
    ) -> dict[str, Any]:
        _refuse_others(unknown, "a search", ("k", "allow", "at_least"))
        given = {"k": k, "allow": allow, "at_least": at_least}
        return {name: getattr(self, name) if value is None else value for name, value in given.items()}

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


class HopfuseVectorStore(VectorStore):
    """A LangChain vector store over an index here or over ``hopfuse serve``, which finds documents right after an add.

    Documents are searched by the index's recipe: by their words, vectors and graph, as far as it has them. Scores are
    comparable only within one answer, so there is no threshold of relevance. Metadata are bools, numbers, strings,
    times with a zone, or lists of strings.

    Parameters
    ----------
    source : path, LiveIndex or str
        A directory, where an empty index is made if there is none, and which this process alone may change while the
        store is open; a LiveIndex that is open for writing; or the URL of a server with ``--writable``.
    embedding : Embeddings, optional
        Makes the vectors of an index here; without one, and without ``encoder``, a new index has none.
    at_least : int or "latest", optional
        As of :class:`HopfuseRetriever`, for all searches.
    **settings
        Other arguments of :func:`.store.open_store`, such as ``create`` and ``encoder``, and of
        :class:`.searcher.Searcher`.

    Raises
    ------
    InputError
        ``source`` is not one of the above, or the index is open for writing elsewhere; in a call, the index or the
        server refuses an argument.

    Examples
    --------
    >>> import tempfile
    >>> from hopfuse.adapters.langchain import HopfuseVectorStore
    >>> store = HopfuseVectorStore(tempfile.mkdtemp())
    >>> store.add_texts(["Ada wrote notes.", "Babbage built the engine."], ids=["a", "b"])
    ['a', 'b']
    >>> [document.id for document in store.as_retriever(search_kwargs={"k": 1}).invoke("Who built the engine?")]
    ['b']
    >>> store.delete(["b"])
    True
    """

    def __init__(
        self, source: Any, embedding: Embeddings | None = None, *, at_least: AtLeast = None, **settings: Any
    ) -> None:
        check_excludes("embedding", embedding, "encoder", settings.get("encoder"))
        if embedding is not None:
            settings["encoder"] = LangChainEncoder(embedding)
        self._embedding, self.at_least = embedding, at_least
        self._store = open_store(source, **settings)
        self.searcher = self._store.searcher

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedding model, if one was given."""
        return self._embedding

    # ---- Documents in and out ----

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Add texts, all or none, and return their ids; a text whose id exists is replaced."""
        _refuse_others(unknown, "add_texts", ("ids", "metadatas"))
        given = checked_texts(texts)
        for name, values in (("metadatas", metadatas), ("ids", ids)):
            if values:
                check_length(len(values), name, len(given), "text")
        named = [id or str(uuid4()) for id in ids or repeat(None, len(given))]
        abouts: Iterable[dict[str, Any]] = metadatas or repeat({}, len(given))
        self._store.add(
            {"id": id, "text": text, "metadata": about} for id, text, about in zip(named, given, abouts, strict=True)
        )
        return named

    def delete(self, ids: Sequence[str] | None = None, *, allow: Filter | None = None, **unknown: Any) -> bool:
        """Delete documents by their ids or by a filter; without either, all of them.

        Parameters
        ----------
        ids : sequence of str, optional
            Those that do not exist are left out.
        allow : mapping of conditions or Where, optional
            Deletes what it allows; a server takes conditions that must all hold.
        """
        _refuse_others(unknown, "delete", ("ids", "allow"))
        check_excludes("ids", ids, "allow", allow)
        if ids is None:
            self._store.delete_all(allow)
        else:
            self._store.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, as far as they exist."""
        return [Document(id=str(one.id), page_content=one.text, metadata=one.metadata) for one in self._store.read(ids)]

    # ---- Searches ----

    def similarity_search(self, query: str, k: int = 4, **given: Any) -> list[Document]:
        """Return the best documents for a question.

        Parameters
        ----------
        query : str
        k : int
        allow : ids, mapping of conditions, or Where, optional
            Documents that may be found, as in :meth:`.searcher.Searcher.search`.
        at_least : int or "latest", optional
            As of the store.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **given)]

    def similarity_search_with_score(self, query: str, k: int = 4, **given: Any) -> list[tuple[Document, float]]:
        """Return the best documents for a question with their scores, as :meth:`similarity_search` does."""
        return self._documents(self.searcher.search([query], **self._settings(k, **given))[0])

    async def asimilarity_search(self, query: str, k: int = 4, **given: Any) -> list[Document]:
        """Return the best documents for a question, as :meth:`similarity_search` does."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **given)]

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **given: Any) -> list[tuple[Document, float]]:
        """Return the best documents for a question with their scores, as :meth:`similarity_search` does."""
        return self._documents((await self.searcher.asearch([query], **self._settings(k, **given)))[0])

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        source: Any,
        ids: list[str] | None = None,
        **settings: Any,
    ) -> HopfuseVectorStore:
        """Return a store with these texts added; ``source`` and the settings configure the store."""
        made = cls(source, embedding, **settings)
        made.add_texts(texts, metadatas, ids=ids)
        return made

    def refresh(self) -> None:
        """Read later changes of other processes, as :meth:`HopfuseRetriever.refresh` does."""
        self.searcher.refresh()

    def close(self) -> None:
        """Let other processes change the directory, once no other store of this process uses it."""
        self._store.close()

    def _settings(self, k: int, allow: Any = None, at_least: AtLeast = None, **unknown: Any) -> dict[str, Any]:
        _refuse_others(unknown, "a search", ("k", "allow", "at_least"))
        return {"k": k, "allow": allow, "at_least": self.at_least if at_least is None else at_least}

    def _documents(self, hits: QuestionHits) -> list[tuple[Document, float]]:
        self.searcher.log_notes(hits)
        return [
            (Document(id=str(hit.id), page_content=hit.text, metadata=passage_metadata(hit)), float(hit.score))
            for hit in hits
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
