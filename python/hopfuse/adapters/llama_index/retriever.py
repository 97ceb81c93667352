"""A LlamaIndex retriever, and LlamaIndex's filters as conditions."""

from __future__ import annotations

from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from ..._validation import check_choice, check_excludes
from ...recipes import Hit
from ..conditions import Filter, as_where, condition, joined
from ..searcher import as_searcher, passage_metadata

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

    A node has the passage's id as a string, its text, and its metadata with the title.

    Parameters
    ----------
    source : str, path, Index, recipe or Searcher
        The URL of a server, the directory of an index, an Index or a recipe. To give an encoder, a server's key or the
        name of a recipe, pass a :class:`..searcher.Searcher`.
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
        operator; in a search, the recipe or the server refuses an argument.

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
        return nodes_of(self._searcher.search([query_bundle.query_str], **self._settings)[0])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes_of((await self._searcher.asearch([query_bundle.query_str], **self._settings))[0])


def nodes_of(hits: list[Hit]) -> list[NodeWithScore]:
    """Return hits as LlamaIndex's nodes, best first."""
    return [
        NodeWithScore(
            node=TextNode(id_=str(hit.id), text=hit.text, metadata=passage_metadata(hit)), score=float(hit.score)
        )
        for hit in hits
    ]


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
