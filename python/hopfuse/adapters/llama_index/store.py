"""A LlamaIndex vector store whose nodes are found right after an add."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from ..._validation import check_choice
from ...errors import InputError
from ...index.live import AtLeast
from ..searcher import QuestionHits, Searcher
from ..store import PassageStore, StoredPassage, open_store
from .retriever import allowed, nodes_of

#: Modes of a query: each of them is answered by the recipe.
MODES = [VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.HYBRID, VectorStoreQueryMode.SEMANTIC_HYBRID]


class HopfuseVectorStore(BasePydanticVectorStore):
    """A LlamaIndex vector store over an index here or over ``hopfuse serve``.

    Nodes are searched by the index's recipe: by their words, vectors and graph, as far as it has them, whatever the
    mode of a query. A node keeps its id, text, metadata, and its source as the passage's document, by which
    ``delete(ref_doc_id)`` deletes it. Its embedding is used if the index has vectors, which are then those of
    LlamaIndex's model: give it as ``encoder=LlamaIndexEncoder(embed_model)``, which encodes questions.

    Parameters
    ----------
    source : path, LiveIndex or str
        A directory, where an empty index is made if there is none, and which this process alone may change while the
        store is open; a LiveIndex that is open for writing; or the URL of a server with ``--writable``.
    at_least : int or "latest", optional
        The seq of a change that must be searched, or ``"latest"`` for all that other processes have committed; what
        this process has committed to an index here is always searched.
    **settings
        Other arguments of :func:`..store.open_store`, such as ``encoder`` and ``create``, and of
        :class:`..searcher.Searcher`.

    Raises
    ------
    InputError
        ``source`` is not one of the above, or the index is open for writing elsewhere; in a call, the index or the
        server refuses an argument.

    Examples
    --------
    >>> import tempfile
    >>> from hopfuse.adapters.llama_index import HopfuseVectorStore
    >>> from llama_index.core import MockEmbedding, VectorStoreIndex
    >>> from llama_index.core.schema import TextNode
    >>> store = HopfuseVectorStore(tempfile.mkdtemp())
    >>> index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=1))
    >>> index.insert_nodes([TextNode(id_="a", text="Ada wrote notes."), TextNode(id_="b", text="The sea.")])
    >>> [node.node_id for node in index.as_retriever(similarity_top_k=1).retrieve("Who wrote notes?")]
    ['a']
    >>> index.delete_nodes(["a"])
    """

    stores_text: bool = True
    is_embedding_query: bool = False
    at_least: int | str | None = None

    _store: PassageStore = PrivateAttr()

    def __init__(self, source: Any, *, at_least: AtLeast = None, **settings: Any) -> None:
        super().__init__(at_least=at_least)
        self._store = open_store(source, **settings)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name for LlamaIndex."""
        return "HopfuseVectorStore"

    @property
    def client(self) -> PassageStore:
        """The store of passages."""
        return self._store

    @property
    def searcher(self) -> Searcher:
        """The searcher of the store, as the source of a retriever."""
        return self._store.searcher

    # ---- Nodes in and out ----

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Add nodes, all or none, and return their ids; a node whose id exists is replaced."""
        self._store.add(map(_row, nodes))
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **given: Any) -> list[str]:
        """Add nodes in a thread, as :meth:`add` does."""
        return await asyncio.to_thread(self.add, nodes, **given)

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        """Delete the nodes of a document."""
        self._store.delete(self._store.ids_of([ref_doc_id]))

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any) -> None:
        """Delete nodes by their ids, as far as they exist, or by filters, or by both, which must all hold."""
        if node_ids is None and filters is None:
            raise InputError("missing", "node_ids", "{field} is missing, and so is {@filters}; clear() deletes all")
        if filters is None:
            self._store.delete(node_ids or ())
        elif node_ids is None:
            self._store.delete_all(allowed(filters, None))
        else:
            self._store.delete([one.id for one in self._matching(node_ids, filters)])

    def clear(self) -> None:
        """Delete all nodes."""
        self._store.delete_all()

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes by their ids, as far as they exist, by filters, or by both; by default all."""
        return [_node(one) for one in self._matching(node_ids, filters)]

    def _matching(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> list[StoredPassage]:
        if node_ids is not None and filters is None:
            return self._store.read(node_ids)
        found = self._store.matching(allowed(filters, None))
        return found if node_ids is None else [one for one in found if str(one.id) in set(node_ids)]

    # ---- Searches ----

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        """Return the best nodes for the text of a query."""
        return self._found(self.searcher.search([_question(query)], **self._settings(query))[0])

    async def aquery(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        """Return the best nodes for the text of a query."""
        return self._found((await self.searcher.asearch([_question(query)], **self._settings(query)))[0])

    def refresh(self) -> None:
        """Read later changes of other processes, if the index is here; a server reads them by itself."""
        self.searcher.refresh()

    def close(self) -> None:
        """Let other processes change the directory, once no other store of this process uses it."""
        self._store.close()

    def _settings(self, query: VectorStoreQuery) -> dict[str, Any]:
        allow = allowed(query.filters, None)
        if query.node_ids or query.doc_ids:
            ids = set(query.node_ids or self._store.ids_of(query.doc_ids or ()))
            if query.node_ids and query.doc_ids:
                ids &= set(self._store.ids_of(query.doc_ids))
            there = self._store.read(ids) if allow is None else self._store.matching(allow)
            allow = [one.id for one in there if one.id in ids or str(one.id) in ids]
        return {"k": query.similarity_top_k, "allow": allow, "at_least": self.at_least}

    def _found(self, hits: QuestionHits) -> VectorStoreQueryResult:
        if not hits:
            self.searcher.log_notes(hits)
        found = nodes_of(hits)
        return VectorStoreQueryResult(
            nodes=[one.node for one in found],
            similarities=[one.score or 0.0 for one in found],
            ids=[one.node.node_id for one in found],
        )


def _question(query: VectorStoreQuery) -> str:
    check_choice(VectorStoreQueryMode(query.mode).value, "mode", [mode.value for mode in MODES])
    if query.query_str is None:
        raise InputError("missing", "query_str", "{field} is missing, which the recipe reads; give the question")
    return str(query.query_str)


def _row(node: BaseNode) -> dict[str, Any]:
    row = {
        "id": node.node_id,
        "text": node.get_content(metadata_mode=MetadataMode.NONE),
        "document": node.ref_doc_id,
        "metadata": node.metadata,
        "vector": None if node.embedding is None else np.asarray(node.embedding, np.float32),
    }
    return {name: value for name, value in row.items() if value is not None}


def _node(one: StoredPassage) -> TextNode:
    node = TextNode(id_=str(one.id), text=one.text, metadata=one.metadata)
    if one.document is not None:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=str(one.document))
    return node
