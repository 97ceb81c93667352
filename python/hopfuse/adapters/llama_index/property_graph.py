"""A LlamaIndex property graph as an index, and a retriever that walks on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from llama_index.core.graph_stores.types import (
    KG_SOURCE_REL,
    TRIPLET_SOURCE_KEY,
    LabelledPropertyGraph,
    PropertyGraphStore,
    Triplet,
)
from llama_index.core.indices.property_graph import BasePGRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from ..._validation import check_excludes
from ...encoders.protocol import checked_vectors
from ...errors import InputError
from ...index import Index
from ...index.contents import passage_vectors
from ...index.live import AtLeast
from ..searcher import QuestionHits, Searcher, as_searcher

#: Nodes whose triplets are requested in one call of a store.
BATCH = 1000


def index_from_property_graph(graph_store: PropertyGraphStore, *, encoder: Any = None) -> Index:
    """Return the index of a property graph: its chunks are passages, and its triplets edges and facts.

    Chunks are linked to the entities of the triplets that they state (``triplet_source_id``), entities to each other by
    their triplets, and chunks to each other by theirs (``NEXT``). Triplets are sorted by name, so the same graph gives
    the same index.

    Parameters
    ----------
    graph_store : PropertyGraphStore
    encoder : Encoder, optional
        Such as :class:`LlamaIndexEncoder`. If every chunk has an embedding, these are used and must be the encoder's;
        otherwise all chunks are encoded. Without an encoder the index has no vectors.

    Raises
    ------
    InputError
        There are no chunks, or embeddings have another dimension than the encoder's.

    Examples
    --------
    >>> from hopfuse.adapters.llama_index import index_from_property_graph
    >>> from llama_index.core.graph_stores import ChunkNode, EntityNode, Relation, SimplePropertyGraphStore
    >>> store = SimplePropertyGraphStore()
    >>> store.upsert_nodes([ChunkNode(text="Ada wrote notes.", id_="a"), EntityNode(name="Ada")])
    >>> said = {"triplet_source_id": "a"}
    >>> store.upsert_relations([Relation(label="wrote", source_id="Ada", target_id="notes", properties=said)])
    >>> index_from_property_graph(store)
    Index(passages=1, entities=2, dim=None, graph=True, lexical=False, metric='ip', storage='float32')
    """
    nodes = graph_store.get()
    chunks = [node for node in nodes if hasattr(node, "text")]
    if not chunks:
        raise InputError(
            "empty",
            "graph_store",
            "{field} has {nodes} nodes and no chunk of text; insert documents first",
            nodes=len(nodes),
        )
    entities = [node for node in nodes if not hasattr(node, "text")]
    place = {node.id: at for at, node in enumerate([*chunks, *entities])}
    chunk_row = {node.id: row for row, node in enumerate(chunks)}
    edges: dict[tuple[int, int, str], int] = {}
    facts: dict[tuple[int, int, str, int], None] = {}
    for head, relation, tail in _triplets(graph_store, list(place)):
        ends = place[head.id], place[tail.id]
        source = chunk_row.get(relation.properties.get(TRIPLET_SOURCE_KEY), -1)
        edges[*ends, relation.label] = source
        if source >= 0 and min(ends) >= len(chunks):
            facts[*ends, relation.label, source] = None
            edges |= {(source, end, "MENTIONS"): -1 for end in ends}
    for node in entities:
        source = chunk_row.get(node.properties.get(TRIPLET_SOURCE_KEY), -1)
        if source >= 0:
            edges[source, place[node.id], "MENTIONS"] = -1
    return Index.build(
        passages=[{"id": node.id, "text": node.text} for node in chunks],
        vectors=None if encoder is None else _vectors(chunks, encoder),
        entities=[node.id for node in entities],
        graph=[
            {"src": src, "dst": dst, "type": label, "passage": source if min(src, dst) >= len(chunks) else -1}
            for (src, dst, label), source in edges.items()
        ],
        facts=[{"head": h, "relation": label, "tail": t, "passage": source} for h, t, label, source in facts],
        fact_ends="node",
        encoder=encoder,
    )


class HopfusePGRetriever(BasePGRetriever):
    """A sub-retriever of a PropertyGraphIndex that ranks its chunks by a walk, which has no depth limit.

    It returns the triplets that the best chunks state, with the chunk's score; a chunk that states none is returned as
    it is. With ``include_text``, triplets come with their chunk, as in LlamaIndex's own sub-retrievers. Notes about a
    question are logged as warnings.

    Parameters
    ----------
    graph_store : PropertyGraphStore
        The store of the triplets and texts to return.
    source : str, path, Index, LiveIndex, Retriever or Searcher, optional
        An index whose passages are the graph's chunks, by their ids; by default one made now by
        :func:`index_from_property_graph` with ``encoder``.
    encoder : Encoder, optional
        Encoder of the default index.
    similarity_top_k : int
        Number of chunks.
    allow : ids of chunks, optional
        As in :meth:`..searcher.Searcher.search`.
    at_least : int or "latest", optional
        As of :class:`HopfuseRetriever`.
    **options
        Options of BasePGRetriever: ``include_text``, ``include_text_preamble``, ``include_properties``.

    Raises
    ------
    InputError
        ``source`` is not one of the above, or both ``source`` and ``encoder`` are given; in a search, the retriever or
        the server refuses an argument.

    Examples
    --------
    >>> from hopfuse.adapters.llama_index import HopfusePGRetriever
    >>> from llama_index.core.graph_stores import ChunkNode, SimplePropertyGraphStore
    >>> store = SimplePropertyGraphStore()
    >>> store.upsert_nodes([ChunkNode(text="Ada wrote notes.", id_="a"), ChunkNode(text="The sea.", id_="b")])
    >>> retriever = HopfusePGRetriever(store, similarity_top_k=1, include_text=False)
    >>> [node.text for node in retriever.retrieve("Who wrote notes?")]
    ['Ada wrote notes.']
    """

    def __init__(
        self,
        graph_store: PropertyGraphStore,
        source: Any = None,
        *,
        encoder: Any = None,
        similarity_top_k: int = 4,
        allow: Any = None,
        at_least: AtLeast = None,
        **options: Any,
    ) -> None:
        check_excludes("encoder", encoder, "source", source, "which has its own: Searcher(source, encoder=...)")
        if source is None:
            source = Searcher(index_from_property_graph(graph_store, encoder=encoder), encoder=encoder)
        self._searcher = as_searcher(source)
        self._settings: dict[str, Any] = {"k": similarity_top_k, "allow": allow, "at_least": at_least}
        super().__init__(graph_store, **options)

    def retrieve_from_graph(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the triplets of the best chunks, or the chunks."""
        hits = self._searcher.search([query_bundle.query_str], **self._settings)[0]
        stated = [self._graph_store.get_triplets(properties={TRIPLET_SOURCE_KEY: hit.id}) for hit in hits]
        return self._nodes(hits, stated)

    async def aretrieve_from_graph(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the triplets of the best chunks, or the chunks."""
        hits = (await self._searcher.asearch([query_bundle.query_str], **self._settings))[0]
        stated = [await self._graph_store.aget_triplets(properties={TRIPLET_SOURCE_KEY: hit.id}) for hit in hits]
        return self._nodes(hits, stated)

    def _nodes(self, hits: QuestionHits, stated: list[list[Triplet]]) -> list[NodeWithScore]:
        self._searcher.log_notes(hits)
        found = []
        for hit, triplets in zip(hits, stated, strict=True):
            chunk, score = RelatedNodeInfo(node_id=str(hit.id)), float(hit.score)
            texts = dict.fromkeys(self._text(one) for one in _sorted(triplets) if _states(hit.id, one))
            found += [
                NodeWithScore(node=TextNode(text=text, relationships={NodeRelationship.SOURCE: chunk}), score=score)
                for text in texts
            ]
            if not texts:
                found.append(NodeWithScore(node=TextNode(id_=str(hit.id), text=hit.text), score=score))
        return found

    def _text(self, triplet: Triplet) -> str:
        return " -> ".join(str(part) if self.include_properties else part.id for part in triplet)


def _triplets(store: PropertyGraphStore, ids: list[str]) -> list[Triplet]:
    """Return all triplets of a store between nodes with these ids, each once, in the order of their names."""
    graph = getattr(store, "graph", None)
    if isinstance(graph, LabelledPropertyGraph):
        found: Iterable[Triplet] = graph.get_triplets()
    else:
        batches = (ids[at : at + BATCH] for at in range(0, len(ids), BATCH))
        found = (one for batch in batches for one in store.get_triplets(ids=batch))
    held = set(ids)
    known = {(h.id, r.id, t.id): (h, r, t) for h, r, t in found if h.id in held and t.id in held}
    return [one for one in _sorted(known.values()) if one[1].id != KG_SOURCE_REL]


def _sorted(triplets: Iterable[Triplet]) -> list[Triplet]:
    return sorted(triplets, key=lambda one: tuple(part.id for part in one))


def _states(chunk: Any, triplet: Triplet) -> bool:
    """Return whether a chunk states a triplet; a relation without a source has that of the query."""
    source = triplet[1].properties.get(TRIPLET_SOURCE_KEY, chunk)
    return bool(source == chunk and triplet[1].id != KG_SOURCE_REL)


def _vectors(chunks: list[Any], encoder: Any) -> Any:
    if any(node.embedding is None for node in chunks):
        return passage_vectors(encoder, [node.text for node in chunks], [node.id for node in chunks])
    return checked_vectors(
        np.array([node.embedding for node in chunks]), len(chunks), encoder.dim, normalize=encoder.normalize
    )
