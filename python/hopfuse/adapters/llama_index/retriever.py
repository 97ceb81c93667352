"""A LlamaIndex retriever, a postprocessor that fuses its nodes with others, and an embedding model as an encoder."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from ..._validation import check_choice, check_excludes
from ...encoders.protocol import NamedEncoder
from ...errors import InputError
from ...index.live import AtLeast
from ...ops.fusion import fuse
from ...types import Hits
from ..searcher import (
    Filter,
    QuestionHits,
    Searcher,
    as_searcher,
    as_where,
    condition,
    joined,
    note_metadata,
    passage_metadata,
)

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
    source : str, path, Index, LiveIndex, Retriever, Searcher or HopfuseVectorStore
        The URL of a server, or what a :class:`..searcher.Searcher` searches here. To give an encoder, a recipe or a
        server's key, pass a Searcher.
    similarity_top_k : int
        Nodes per question.
    filters : MetadataFilters, optional
        LlamaIndex's conditions on metadata; missing values are treated as LlamaIndex does. With a server, they must be
        joined by AND, and none may be negated.
    allow : ids, mapping of conditions, or Where, optional
        As in :meth:`..searcher.Searcher.search`; an alternative to ``filters``.
    at_least : int or "latest", optional
        The seq of a change that must be searched, or ``"latest"`` for all that other processes have committed; what
        this process has committed to an index here is always searched.
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
        at_least: AtLeast = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._searcher = as_searcher(source)
        self._settings: dict[str, Any] = {
            "k": similarity_top_k,
            "allow": allowed(filters, allow),
            "at_least": at_least,
        }
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._searcher.search([query_bundle.query_str], **self._settings)[0])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes((await self._searcher.asearch([query_bundle.query_str], **self._settings))[0])

    def refresh(self) -> None:
        """Read later changes of other processes, if the index is here; a server reads them by itself."""
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


class LlamaIndexEncoder(NamedEncoder):
    """A LlamaIndex embedding model as an encoder of questions and passages.

    Questions are encoded one by one by ``get_query_embedding``, passages in batches by ``get_text_embedding_batch``.

    Parameters
    ----------
    embed_model : BaseEmbedding
    dim : int, optional
        By default the length of the vector of a text.
    name : str, optional
        By default the model's name.
    normalize : bool
        Scale every row to length 1, in float64, and round to float32.

    Examples
    --------
    >>> from hopfuse.adapters.llama_index import LlamaIndexEncoder
    >>> from llama_index.core import MockEmbedding
    >>> LlamaIndexEncoder(MockEmbedding(embed_dim=4)).encode_queries(["who?"])
    array([[0.5, 0.5, 0.5, 0.5]], dtype=float32)
    """

    def __init__(
        self, embed_model: BaseEmbedding, *, dim: int | None = None, name: str | None = None, normalize: bool = True
    ) -> None:
        self._model = embed_model
        width = len(embed_model.get_query_embedding("dimension")) if dim is None else dim
        super().__init__(name or f"llama-index/{embed_model.model_name}", width, normalize)

    def _vectors(self, texts: list[str], of_passages: bool) -> Any:
        if of_passages:
            return self._model.get_text_embedding_batch(texts)
        return [self._model.get_query_embedding(text) for text in texts]


class HopfuseFusion(BaseNodePostprocessor):
    """Fuse the nodes of any LlamaIndex retriever with hopfuse's hits for the same question.

    A node and a hit with the same id become one: the retriever's node, with the fused score. Ties keep the order of the
    retriever, then that of the hits. Notes about a question are logged as warnings.

    Attributes
    ----------
    source : str, path, Index, LiveIndex, Retriever or Searcher
        As in :class:`HopfuseRetriever`.
    top_n : int
        Number of nodes to return.
    k : int
        Number of hits to fuse.
    allow : ids, mapping of conditions, or Where, optional
        As in :meth:`..searcher.Searcher.search`.
    at_least : int or "latest", optional
        As of :class:`HopfuseRetriever`.
    options : dict
        Arguments of :func:`hopfuse.fuse`: ``{"method": "rrf", "weights": [0.7, 0.3]}``, for the nodes and the hits.
    extend : bool
        Also return hits that the retriever did not find.

    Raises
    ------
    InputError
        There is no question, nodes have no scores, or :func:`hopfuse.fuse`, the retriever or the server refuses an
        argument.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.llama_index import HopfuseFusion
    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> fusion = HopfuseFusion(source=hf.Index.build(passages=rows), options={"method": "rrf"})
    >>> given = [NodeWithScore(node=TextNode(id_=one["id"], text=one["text"]), score=0.5) for one in rows]
    >>> [node.node_id for node in fusion.postprocess_nodes(given, query_str="Who built the engine?")]
    ['b', 'a']
    """

    source: Any = Field(exclude=True)
    top_n: int = 10
    k: int = 30
    allow: Any = None
    at_least: int | str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    extend: bool = True

    _searcher: Searcher = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the index, or connect to the server."""
        super().model_post_init(context)
        self._searcher = as_searcher(self.source)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name for LlamaIndex."""
        return "HopfuseFusion"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        question = _question(query_bundle)
        return self._fused(nodes, self._searcher.search([question], **self._settings)[0])

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        found = await self._searcher.asearch([_question(query_bundle)], **self._settings)
        return self._fused(nodes, found[0])

    @property
    def _settings(self) -> dict[str, Any]:
        return {"k": self.k, "allow": self.allow, "at_least": self.at_least}

    def _fused(self, given: list[NodeWithScore], hits: QuestionHits) -> list[NodeWithScore]:
        self._searcher.log_notes(hits)
        found = nodes_of(hits)
        known: dict[str, NodeWithScore] = {}
        for one in [*given, *found] if self.extend else given:
            known.setdefault(one.node.node_id, one)
        rows = {id: row for row, id in enumerate(known)}
        fused = fuse([_hits(given, rows), _hits(found, rows)], k=self.top_n, **self.options)
        listed = list(known.values())
        return [NodeWithScore(node=listed[row].node, score=score) for row, score in fused.row(0)]


def _question(bundle: QueryBundle | None) -> str:
    if bundle is None:
        raise InputError(
            "missing", "query_bundle", "{field} is missing, which has the question; give it, or {@query_str}"
        )
    return str(bundle.query_str)


def _hits(nodes: list[NodeWithScore], rows: dict[str, int]) -> Hits:
    """Return a list of nodes as Hits; a repeated node has its best score."""
    scores: dict[int, float] = {}
    for one in nodes:
        if one.score is None:
            raise InputError(
                "missing", "nodes", "{field} has {node!r} without a score; fusion needs scores", node=one.node.node_id
            )
        row = rows.get(one.node.node_id)
        if row is not None:
            scores[row] = max(one.score, scores.get(row, one.score))
    return Hits([list(scores)], [list(scores.values())])
