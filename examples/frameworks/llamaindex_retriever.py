"""Search an index from LlamaIndex, fuse its hits with another retriever's, and walk on a property graph.

Run ``python examples/frameworks/llamaindex_retriever.py`` with hopfuse's extra ``llamaindex`` installed.
"""

import hopfuse as hf
from hopfuse.adapters.llama_index import HopfuseFusion, HopfusePGRetriever, HopfuseRetriever
from llama_index.core.graph_stores import ChunkNode, EntityNode, Relation, SimplePropertyGraphStore
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

passages = [
    {"id": "ada", "text": "Ada Lovelace wrote notes on the Analytical Engine.", "metadata": {"year": 1843}},
    {"id": "babbage", "text": "Charles Babbage designed the Analytical Engine.", "metadata": {"year": 1837}},
    {"id": "hopper", "text": "Grace Hopper wrote one of the first compilers.", "metadata": {"year": 1952}},
]
index = hf.Index.build(passages=passages)  # or the URL of hopfuse serve, "http://localhost:8080"

late = MetadataFilters(filters=[MetadataFilter(key="year", operator=FilterOperator.GTE, value=1840)])
for node in HopfuseRetriever(index, similarity_top_k=2, filters=late).retrieve("Who wrote notes?"):
    print(f"{node.score:.3f}  {node.text}")

# Nodes of any other retriever, fused with hopfuse's for the same question.
given = [
    NodeWithScore(node=TextNode(id_=one["id"], text=one["text"]), score=score)
    for one, score in zip(passages, (0.4, 0.5, 0.6), strict=True)
]
fusion = HopfuseFusion(source=index, top_n=1, options={"method": "rrf"})
print("fused:", fusion.postprocess_nodes(given, query_str="Who designed the engine?")[0].node_id)

# A property graph made by hand; PropertyGraphIndex makes one from documents.
store = SimplePropertyGraphStore()
store.upsert_nodes([ChunkNode(text=str(one["text"]), id_=str(one["id"])) for one in passages])
store.upsert_nodes([EntityNode(name=name) for name in ("Ada Lovelace", "Charles Babbage", "Analytical Engine")])
for chunk, head, label in (("ada", "Ada Lovelace", "WROTE_ON"), ("babbage", "Charles Babbage", "DESIGNED")):
    said = {"triplet_source_id": chunk}
    store.upsert_relations([Relation(label=label, source_id=head, target_id="Analytical Engine", properties=said)])
for node in HopfusePGRetriever(store, similarity_top_k=2, include_text=False).retrieve("Who designed the Engine?"):
    print(node.text)
