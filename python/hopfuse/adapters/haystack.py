"""A Haystack retriever component and a document store, which can be saved and loaded with their pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, TypeVar

from .._validation import check_list, check_type, wrong_type
from ..errors import InputError, MissingExtraError
from ..index.live import AtLeast
from .searcher import Filter, QuestionHits, Searcher, as_where, condition, joined, passage_metadata, refuse_settings
from .store import Existing, PassageStore, StoredPassage, open_store

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
    from haystack.utils import Secret, deserialize_secrets_inplace
except ModuleNotFoundError as _error:
    raise MissingExtraError("haystack-ai", "haystack", "hopfuse.adapters.haystack") from _error

#: Haystack's operators in terms of those of :func:`hopfuse.where`.
OPERATORS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "ge", "<": "lt", "<=": "le", "in": "in", "not in": "nin"}
#: Haystack's policies for documents that exist; none is as FAIL, as in its own store.
POLICIES: dict[Any, Existing] = {
    DuplicatePolicy.NONE: "refuse",
    DuplicatePolicy.FAIL: "refuse",
    DuplicatePolicy.SKIP: "skip",
    DuplicatePolicy.OVERWRITE: "replace",
}
T = TypeVar("T")
Own = TypeVar("Own", bound="_Saved")


class _Saved:
    """Settings that are saved with a pipeline: a source, a server's key and others that are plain values."""

    source: Any
    key: Secret | None
    settings: dict[str, Any]

    def _saved(self, **own: Any) -> dict[str, Any]:
        for name, value in {"source": self.source, **self.settings}.items():
            if not isinstance(value, str if name == "source" else str | float | int | dict | None):
                raise InputError(
                    "unsupported",
                    name,
                    "{field} is an object in memory ({kind}), which a pipeline does not save; give the directory of an "
                    "index with a known encoder, or the URL of a server",
                    kind=type(value).__name__,
                )
        about = {"source": self.source, **own, **self.settings}
        saved: dict[str, Any] = default_to_dict(self, **about, key=None if self.key is None else self.key.to_dict())
        return saved

    @classmethod
    def from_dict(cls: type[Own], data: dict[str, Any]) -> Own:
        """Return the object from its saved form."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["key"])
        made: Own = default_from_dict(cls, data)
        return made


@component
class HopfuseRetriever(_Saved):
    """A Haystack retriever over an index here or over ``hopfuse serve``.

    A document has the passage's id as a string, its text as content, its metadata and title as meta, and a score. A
    second output, ``notes``, is a list of str about what was not known or not used of the question. The index is opened
    by ``warm_up`` or the first run. To load a saved pipeline, Haystack needs
    ``Pipeline.loads(text, allowed_modules=["hopfuse.adapters.haystack"])``.

    Parameters
    ----------
    source : str, path, Index, LiveIndex, Retriever, Searcher or HopfuseDocumentStore
        The URL of a server or the directory of an index, or a document store over one of these, which is saved as its
        source; a component with any other source runs but cannot be saved.
    top_k : int
        Documents for a question.
    filters : dict, optional
        Haystack's filters on fields ``meta.NAME``; missing values are treated as Haystack does. A run's filters replace
        them. With a server, conditions must be joined by AND, and ``!=`` and ``not in`` are refused.
    at_least : int or "latest", optional
        The seq of a change that must be searched, or ``"latest"`` for all that other processes have committed; a run's
        replaces it. What this process has committed to an index here is always searched.
    key : Secret, optional
        A server's key: ``Secret.from_env_var("HOPFUSE_KEY")``.
    **settings
        Other arguments of :class:`.searcher.Searcher`, unless the source is one. A component is saved if they are plain
        values, such as ``recipe="hybrid-rrf"`` or an encoder's name.

    Raises
    ------
    InputError
        Filters are malformed, or an argument belongs to the Searcher given as source. ``warm_up`` refuses any other
        source; in a run, the retriever or the server refuses an argument.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.haystack import HopfuseRetriever
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> retriever = HopfuseRetriever(hf.Index.build(passages=rows), top_k=1)
    >>> [document.content for document in retriever.run("Who built the engine?")["documents"]]
    ['Babbage built the engine.']
    """

    def __init__(
        self,
        source: Any,
        *,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        at_least: AtLeast = None,
        key: Secret | None = None,
        **settings: Any,
    ) -> None:
        self._store = source if isinstance(source, HopfuseDocumentStore) else None
        if isinstance(source, HopfuseDocumentStore | Searcher):
            refuse_settings({**settings, "key": key}, f"a {type(source).__name__}")
        if isinstance(source, HopfuseDocumentStore):
            source, key, settings = source.source, source.key, source.search_settings
        self.source = str(source) if isinstance(source, PathLike) else source
        self.top_k, self.filters, self.at_least, self.key, self.settings = top_k, filters, at_least, key, settings
        self._searcher: Searcher | None = source if isinstance(source, Searcher) else None
        read_filters(filters)

    def warm_up(self) -> None:
        """Open the index, or connect to the server."""
        if self._searcher is None and self._store is not None:
            self._searcher = self._store.searcher
        elif self._searcher is None:
            key = None if self.key is None else self.key.resolve_value()
            self._searcher = Searcher(self.source, key=key, **self.settings)

    @component.output_types(documents=list[Document], notes=list[str])
    def run(
        self,
        query: str,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        at_least: int | str | None = None,
    ) -> dict[str, list[Any]]:
        """Return the documents of a question, best first, and notes about it."""
        return _outputs(self._opened().search([query], **self._search_options(top_k, filters, at_least)))

    @component.output_types(documents=list[Document], notes=list[str])
    async def run_async(
        self,
        query: str,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        at_least: int | str | None = None,
    ) -> dict[str, list[Any]]:
        """Return the documents of a question, best first, and notes about it."""
        return _outputs(await self._opened().asearch([query], **self._search_options(top_k, filters, at_least)))

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a pipeline saves it.

        Raises
        ------
        InputError
            The source or a setting, such as the encoder, is an object in memory.
        """
        return self._saved(top_k=self.top_k, filters=self.filters, at_least=self.at_least)

    def refresh(self) -> None:
        """Read later changes of other processes, if the index is here; a server reads them by itself."""
        self._opened().refresh()

    def _opened(self) -> Searcher:
        self.warm_up()
        assert self._searcher is not None
        return self._searcher

    def _search_options(
        self, top_k: int | None, filters: dict[str, Any] | None, at_least: int | str | None
    ) -> dict[str, Any]:
        chosen = read_filters(self.filters if filters is None else filters)
        at_least = self.at_least if at_least is None else at_least
        return {"k": self.top_k if top_k is None else top_k, "allow": chosen, "at_least": at_least}


class HopfuseDocumentStore(_Saved):
    """A Haystack document store over an index here or over ``hopfuse serve``; documents are found right after a write.

    A document is a passage with its id, content and meta, which has bools, numbers, strings, times with a zone, or
    lists of strings; with ``embeddings=True`` its embedding is the vector, which the encoder makes otherwise.
    Embeddings are not returned. The index is opened at the first use. To load a pipeline with it, Haystack needs
    ``allowed_modules=["hopfuse.adapters.haystack"]``.

    Parameters
    ----------
    source : path, LiveIndex or str
        A directory, where an empty index is made if there is none, and which this process alone may change while the
        store is open; a LiveIndex that is open for writing; or the URL of a server with ``--writable``.
    key : Secret, optional
        A server's key.
    embeddings : bool
        Use the embeddings of documents, if all that are written together have one.
    **settings
        Other arguments of :func:`.store.open_store`, such as ``encoder`` and ``create``, and of
        :class:`.searcher.Searcher`.

    Raises
    ------
    InputError
        In a call: ``source`` is not one of the above, the index is open for writing elsewhere, or the index or the
        server refuses a document.
    FilterError
        Filters are malformed, or do not fit the metadata.
    DuplicateDocumentError
        A document exists, and the policy is FAIL or NONE.

    Examples
    --------
    >>> import tempfile
    >>> from haystack import Document
    >>> from hopfuse.adapters.haystack import HopfuseDocumentStore, HopfuseRetriever
    >>> store = HopfuseDocumentStore(tempfile.mkdtemp())
    >>> store.write_documents([Document(content="Ada wrote notes."), Document(content="Babbage built the engine.")])
    2
    >>> found = HopfuseRetriever(store, top_k=1).run("Who built the engine?")["documents"]
    >>> store.delete_documents([found[0].id])
    >>> found[0].content, store.count_documents()
    ('Babbage built the engine.', 1)
    """

    def __init__(self, source: Any, *, key: Secret | None = None, embeddings: bool = False, **settings: Any) -> None:
        self.source = str(source) if isinstance(source, PathLike) else source
        self.key, self.embeddings, self.settings = key, embeddings, settings
        self._opened: PassageStore | None = None

    @property
    def searcher(self) -> Searcher:
        """The searcher of the store."""
        return self._store().searcher

    @property
    def search_settings(self) -> dict[str, Any]:
        """The settings of a searcher of the same index."""
        return {name: value for name, value in self.settings.items() if name != "create"}

    def to_dict(self) -> dict[str, Any]:
        """Return the store as a pipeline saves it.

        Raises
        ------
        InputError
            The source or a setting, such as the encoder, is an object in memory.
        """
        return self._saved(embeddings=self.embeddings)

    def count_documents(self) -> int:
        """Return the number of documents."""
        return self._store().count()

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that filters allow, in the order in which they were written; by default all."""
        return [_document(one) for one in _by_filter(self._store().matching, filters)]

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return the number of documents that filters allow."""
        return _by_filter(self._store().count, filters)

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write documents, all or none, and return how many were written."""
        rows = [self._row(one, at) for at, one in enumerate(check_list(documents, "documents"))]
        try:
            return len(self._store().add(rows, POLICIES[policy]))
        except InputError as error:
            if error.code == "duplicate":
                raise DuplicateDocumentError(str(error)) from error
            raise

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents by their ids, as far as they exist."""
        self._store().delete(check_list(document_ids, "document_ids"))

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that filters allow, and return their number."""
        return _by_filter(self._store().delete_all, check_type(filters, "filters", Mapping, "a dictionary"))

    def delete_all_documents(self) -> None:
        """Delete all documents."""
        self._store().delete_all()

    async def count_documents_async(self) -> int:
        """Return the number of documents."""
        return await asyncio.to_thread(self.count_documents)

    async def filter_documents_async(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return documents as :meth:`filter_documents` does."""
        return await asyncio.to_thread(self.filter_documents, filters)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents as :meth:`write_documents` does."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """Delete documents as :meth:`delete_documents` does."""
        await asyncio.to_thread(self.delete_documents, document_ids)

    def refresh(self) -> None:
        """Read later changes of other processes, if the index is here; a server reads them by itself."""
        self.searcher.refresh()

    def close(self) -> None:
        """Let other processes change the directory, once no other store of this process uses it."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _store(self) -> PassageStore:
        if self._opened is None:
            key = None if self.key is None else self.key.resolve_value()
            self._opened = open_store(self.source, key=key, **self.settings)
        return self._opened

    def _row(self, one: Any, at: int) -> dict[str, Any]:
        field = f"documents[{at}]"
        check_type(one, field, Document, "a haystack.Document")
        if one.blob is not None or one.content is None:
            raise InputError("unsupported", field, "{field} has no text; only documents with content are kept")
        row = {"id": one.id, "text": one.content, "metadata": one.meta}
        return row | ({"vector": one.embedding} if self.embeddings and one.embedding is not None else {})


def _by_filter(call: Callable[[Filter | None], T], filters: Mapping[str, Any] | None) -> T:
    """Call with filters; what is wrong with them is an error of Haystack's class."""
    try:
        return call(read_filters(filters))
    except InputError as error:
        if filters:
            raise FilterError(str(error)) from error
        raise


def _document(one: StoredPassage) -> Document:
    return Document(id=str(one.id), content=one.text, meta=one.metadata)


def _outputs(rows: list[QuestionHits]) -> dict[str, list[Any]]:
    documents = [
        Document(id=str(hit.id), content=hit.text, meta=passage_metadata(hit), score=float(hit.score))
        for hit in rows[0]
    ]
    return {"documents": documents, "notes": [str(note) for note in rows[0].notes]}


def read_filters(filters: Mapping[str, Any] | None) -> Filter | None:
    """Return Haystack's filters as ``allow=``.

    Raises
    ------
    InputError
        The filters are malformed.
    """
    return _filter(filters) if filters else None


def _filter(filters: Any) -> Filter:
    if not isinstance(filters, Mapping):
        raise wrong_type(filters, "filters", "a dictionary")
    operator = filters.get("operator")
    if operator in ("AND", "OR", "NOT") and filters.get("conditions"):
        parts = [_filter(one) for one in filters["conditions"]]
        if operator == "NOT":  # not all of them hold
            return ~as_where(joined(parts, "and"))
        return joined(parts, "and" if operator == "AND" else "or")
    if operator not in OPERATORS or "field" not in filters or "value" not in filters:
        raise InputError(
            "syntax",
            "filters",
            "{field} has {given!r}; a condition has field, value and operator ({allowed}), and a group has operator "
            "(AND, OR, NOT) and conditions",
            given=dict(filters),
            allowed=", ".join(OPERATORS),
        )
    field, value = str(filters["field"]).removeprefix("meta."), filters["value"]
    if operator in ("in", "not in"):
        check_type(value, f"filters[{field!r}]", list, "a list")
    if value is None and operator in ("==", "!="):
        return condition(field, "exists", operator == "!=")
    if value is None:  # nothing compares with it
        return as_where(condition(field, "exists", True)) & as_where(condition(field, "exists", False))
    return condition(field, OPERATORS[operator], value)
