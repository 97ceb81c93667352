"""A LlamaIndex retriever, and LlamaIndex's filters as conditions."""

from __future__ import annotations

from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from ..._validation import check_choice, check_excludes
from ..conditions import Filter, as_where, condition, joined
from ..searcher import QuestionHits, as_searcher, note_metadata, passage_metadata

#: LlamaIndex's operators in terms of those of :func:`hopfuse.where`.
OPERATORS = {
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    ">=": "ge",
    "<": "lt",
    "<=": "le",
    "in": "in",
    "nin": "nin",
    "any": "any",
    "all": "all",
}


class HopfuseRetriever(BaseRetriever):
    """A LlamaIndex retriever over an index here or over ``hopfuse serve``.

    A node has the passage's id as a string, its text, and its metadata with the title. Notes about the question are a
    list of str in the metadata under ``hopfuse_notes``, which language models and embeddings do not see, and a warning
    in the log if there is no node.

    Parameters
    ----------
    source : str, path, Index, LiveIndex, Retriever or Searcher
        The URL of a server, or what a :class:`..searcher.Searcher` searches here. To give an encoder, a recipe or a
        server's key, pass a Searcher.
    similarity_top_k : int
        Nodes per question.
    filters : MetadataFilters, optional
        LlamaIndex's conditions on metadata; missing values are treated as LlamaIndex does. With a server, they must be
        joined by AND, and none may be negated.
    allow : ids, mapping of conditions, or Where, optional
        As in :meth:`..searcher.Searcher.search`; an alternative to ``filters``.
    callback_manager : CallbackManager, optional

    Raises
    ------
    InputError
        ``source`` is not one of the above, both ``filters`` and ``allow`` are given, or a filter has an unsupported
        operator; in a search, the retriever or the server refuses an argument.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.llama_index import HopfuseRetriever
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> retriever = HopfuseRetriever(hf.Index.build(passages=rows), similarity_top_k=1)
    >>> [node.text for node in retriever.retrieve("Who built the engine?")]
    ['Babbage built the engine.']
    """

    def __init__(
        self,
        source: Any,
        *,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        allow: Any = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._searcher = as_searcher(source)
        self._settings = {"k": similarity_top_k, "allow": allowed(filters, allow)}
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._searcher.search([query_bundle.query_str], **self._settings)[0])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes((await self._searcher.asearch([query_bundle.query_str], **self._settings))[0])

    def refresh(self) -> None:
        """Read later changes of the index, if it is here; a server reads them by itself."""
        self._searcher.refresh()

    def _nodes(self, hits: QuestionHits) -> list[NodeWithScore]:
        if not hits:
            self._searcher.log_notes(hits)
        return nodes_of(hits)


def nodes_of(hits: QuestionHits) -> list[NodeWithScore]:
    """Return hits as LlamaIndex's nodes, best first, with the question's notes in their metadata."""
    notes, found = note_metadata(hits), []
    hidden = {f"excluded_{reader}_metadata_keys": list(notes) for reader in ("llm", "embed")}
    for hit in hits:
        node = TextNode(id_=str(hit.id), text=hit.text, metadata=passage_metadata(hit) | notes, **hidden)
        found.append(NodeWithScore(node=node, score=float(hit.score)))
    return found


def allowed(filters: MetadataFilters | None, allow: Any) -> Any:
    """Return LlamaIndex's filters, or hopfuse's own, as ``allow=``."""
    if filters is None or not filters.filters:
        return allow
    check_excludes("filters", filters, "allow", allow)
    return _filter(filters)


def _filter(given: Any) -> Filter:
    if isinstance(given, MetadataFilters):
        how = given.condition or FilterCondition.AND
        if how == FilterCondition.NOT:  # none of them holds
            return ~as_where(joined([_filter(one) for one in given.filters], "or"))
        return joined([_filter(one) for one in given.filters], "and" if how == FilterCondition.AND else "or")
    operator = str(given.operator.value)
    if operator == "contains":  # a list that has the value
        return condition(given.key, "any", [given.value])
    if operator == "is_empty":
        return condition(given.key, "exists", False)
    check_choice(operator, f"filters[{given.key!r}]", (*OPERATORS, "contains", "is_empty"))
    return condition(given.key, OPERATORS[operator], given.value)
