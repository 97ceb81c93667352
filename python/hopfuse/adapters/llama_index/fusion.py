"""A LlamaIndex postprocessor that fuses a retriever's nodes with hopfuse's."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from ...errors import InputError
from ...ops.fusion import fuse
from ...types import Hits
from ..searcher import QuestionHits, Searcher, as_searcher
from .retriever import nodes_of


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
        return self._fused(nodes, self._searcher.search([question], k=self.k, allow=self.allow)[0])

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        found = await self._searcher.asearch([_question(query_bundle)], k=self.k, allow=self.allow)
        return self._fused(nodes, found[0])

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
