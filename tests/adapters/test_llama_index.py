"""LlamaIndex: retriever, filters, fusing postprocessor and property graphs, here and over ``hopfuse serve``."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import hopfuse as hf
import numpy as np
import pytest
from adapters.frameworks import QUESTIONS, served, small_index
from adapters.memories import add_elsewhere, check_reads_its_writes, turn
from hopfuse.adapters.searcher import Searcher
from hopfuse.errors import InputError

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("llama_index.core", reason="the adapter needs llama-index-core (extra llamaindex)")

from hopfuse.adapters.llama_index import (
    HopfuseFusion,
    HopfusePGRetriever,
    HopfuseRetriever,
    HopfuseVectorStore,
    LlamaIndexEncoder,
    index_from_property_graph,
)
from llama_index.core import Document, MockEmbedding, PropertyGraphIndex, VectorStoreIndex
from llama_index.core.graph_stores import ChunkNode, EntityNode, Relation, SimplePropertyGraphStore
from llama_index.core.graph_stores.types import KG_NODES_KEY, KG_RELATIONS_KEY
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode, TransformComponent
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    utils,
)
from refusals import refused


def seen(nodes):
    return [(one.node.node_id, one.node.text, one.node.metadata, one.score) for one in nodes]


def test_nodes_are_the_hits(source):
    hits = Searcher(source).search(QUESTIONS, k=3)
    retriever = HopfuseRetriever(source, similarity_top_k=3)
    expected = [[(h.id, h.text, {"title": h.title, **h.metadata}, h.score) for h in row] for row in hits]
    assert [seen(retriever.retrieve(one)) for one in QUESTIONS] == expected

    async def ask():
        return await asyncio.gather(*map(retriever.aretrieve, QUESTIONS))

    assert [seen(nodes) for nodes in asyncio.run(ask())] == expected
    assert seen(retriever.retrieve(QueryBundle(QUESTIONS[0]))) == expected[0]


def test_notes_are_hidden_metadata(source, caplog):
    retriever = HopfuseRetriever(source, similarity_top_k=2)
    (hits,) = Searcher(source).search(["Xyzzy?"], k=2)
    found = retriever.retrieve("Xyzzy?")
    notes = [str(note) for note in hits.notes]
    assert [one.node.metadata["hopfuse_notes"] for one in found] == [notes] * len(hits)
    assert len(notes) == 1
    assert not any("hopfuse_notes" in one.node.get_content(mode) for one in found for mode in ("llm", "embed"))
    assert [notes[0] in line for line in caplog.messages] == ([] if hits else [True])
    caplog.clear()
    HopfuseFusion(source=source, k=2).postprocess_nodes(nodes(("p5", 0.9)), query_str="Xyzzy?")
    assert [notes[0] in line for line in caplog.messages] == [True]


def test_a_query_engine_answers_from_the_nodes(source):
    engine = RetrieverQueryEngine.from_args(HopfuseRetriever(source, similarity_top_k=1), llm=MockLLM())
    answer = engine.query(QUESTIONS[0])
    assert [one.node.node_id for one in answer.source_nodes] == [Searcher(source).search(QUESTIONS[:1])[0][0].id]
    assert answer.source_nodes[0].node.text in str(answer)  # the mock repeats its prompt


def where(*conditions, how="and"):
    """LlamaIndex's filters: (key, operator, value), or others."""
    made = [one if isinstance(one, MetadataFilters) else _filter(*one) for one in conditions]
    return MetadataFilters(filters=made, condition=FilterCondition(how))


def _filter(key, operator, value):
    return MetadataFilter(key=key, operator=FilterOperator(operator), value=value)


FILTERS = [
    where(("tenant", "==", "a")),
    where(("tenant", "==", "a"), ("number", ">=", 2), ("number", "<", 6)),
    where(("number", "in", [1, 2, 5]), ("number", "!=", 2)),
    where(("number", "nin", [1, 2, 5])),
    where(("number", ">", 5), ("number", "<=", 1), how="or"),
    where(("number", ">", 5), ("tenant", "==", "a"), how="not"),
    where(("tenant", "is_empty", None), ("number", ">", 6), how="or"),
]


@pytest.mark.parametrize("filters", FILTERS)
def test_filters_mean_what_they_mean_to_llama_index(filters):
    """A passage without metadata is among them: a value that is missing is unlike any other."""
    about = [{"tenant": "ab"[at % 2], "number": at} for at in range(8)] + [{}]
    index = hf.Index.build(
        passages=[{"id": str(at), "text": "a road", "metadata": one} for at, one in enumerate(about)]
    )
    own = utils.build_metadata_filter_fn(lambda id: about[int(id)], filters)
    found = HopfuseRetriever(index, similarity_top_k=20, filters=filters).retrieve("road")
    assert {one.node.node_id for one in found} == {str(at) for at in range(9) if own(str(at))}
    assert 0 < len(found) < 9


def test_nested_filters_and_lists_of_strings():
    tags = [["x"], ["x", "y"], ["y"], []]
    index = hf.Index.build(passages=[{"text": "a road", "metadata": {"tags": one}} for one in tags])

    def ids(filters):
        return {one.node.node_id for one in HopfuseRetriever(index, filters=filters).retrieve("road")}

    assert ids(where(("tags", "contains", "x"))) == {"0", "1"}
    assert ids(where(("tags", "any", ["x", "y"]))) == {"0", "1", "2"}
    assert ids(where(("tags", "all", ["x", "y"]))) == {"1"}
    assert ids(where(where(("tags", "contains", "x")), where(("tags", "contains", "y"), how="not"))) == {"0"}
    with refused(InputError, "choice", "filters['tags']", given="text_match"):
        HopfuseRetriever(index, filters=where(("tags", "text_match", "x")))


def test_filters_of_a_server(source, url):
    both = where(("tenant", "==", "a"), ("number", ">=", 2))
    found = HopfuseRetriever(source, filters=both).retrieve(QUESTIONS[0])
    expected = Searcher(source).search(QUESTIONS[:1], allow={"tenant": "a", "number__ge": 2})[0]
    assert [one.node.node_id for one in found] == [hit.id for hit in expected]
    assert expected
    with refused(InputError, "unsupported", "allow"):
        HopfuseRetriever(url, filters=where(("number", "!=", 2))).retrieve(QUESTIONS[0])
    with refused(InputError, "conflict", "filters"):
        HopfuseRetriever(source, filters=both, allow=["p1"])


def nodes(*scored):
    return [NodeWithScore(node=TextNode(id_=id, text=f"own {id}"), score=score) for id, score in scored]


def test_fusion_is_hopfuses_own(source):
    given, found = [("p5", 0.9), ("x", 0.8), ("p1", 0.7)], Searcher(source).search(QUESTIONS[:1], k=4)[0]
    ids = list(dict.fromkeys([id for id, _ in given] + [hit.id for hit in found]))
    lists = [
        hf.Hits([[ids.index(id) for id, _ in given]], [[score for _, score in given]]),
        hf.Hits([[ids.index(hit.id) for hit in found]], [[hit.score for hit in found]]),
    ]
    for options in ({}, {"method": "rrf", "weights": [0.6, 0.4]}, {"method": "comb_mnz"}):
        expected = [(ids[row], score) for row, score in hf.fuse(lists, k=5, **options).row(0)]
        fusion = HopfuseFusion(source=source, k=4, top_n=5, options=options)
        made = fusion.postprocess_nodes(nodes(*given), query_str=QUESTIONS[0])
        assert [(one.node.node_id, one.score) for one in made] == expected
        later = asyncio.run(fusion.apostprocess_nodes(nodes(*given), query_bundle=QueryBundle(QUESTIONS[0])))
        assert seen(later) == seen(made)
    texts = {one.node.node_id: one.node.text for one in made}
    assert texts["x"] == "own x"
    assert next(text for id, text in texts.items() if id not in {"x", "p5", "p1"}).startswith("The road from")


def test_fusion_of_the_given_nodes_alone_and_its_refusals(source):
    fusion = HopfuseFusion(source=source, extend=False, k=8)
    made = fusion.postprocess_nodes(nodes(("p5", 0.2), ("p0", 0.1), ("p5", 0.9)), query_str=QUESTIONS[0])
    assert sorted(one.node.node_id for one in made) == ["p0", "p5"]
    with refused(InputError, "missing", "query_bundle"):
        fusion.postprocess_nodes(nodes(("p5", 0.2)))
    with refused(InputError, "missing", "nodes", node="p5"):
        fusion.postprocess_nodes(nodes(("p5", None)), query_str=QUESTIONS[0])
    assert "source" not in fusion.model_dump()


class Roads(TransformComponent):
    """A reader of facts: what a text says of two cities."""

    def __call__(self, nodes, **kwargs):
        for node in nodes:
            a, b = node.text.split()[3], node.text.split()[-1].rstrip(".")
            node.metadata[KG_NODES_KEY] = [EntityNode(name=a, label="CITY"), EntityNode(name=b, label="CITY")]
            node.metadata[KG_RELATIONS_KEY] = [Relation(label="LEADS_TO", source_id=a, target_id=b)]
        return nodes


CHAIN = ["Ankara", "Bergen", "Cusco", "Dakar", "Erfurt"]


@pytest.fixture
def graph_index():
    """A PropertyGraphIndex of five chunks, a chain of roads and one apart."""
    pairs = [*pairwise(CHAIN), ("Lima", "Quito")]
    chunks = [TextNode(id_=f"c{at}", text=f"The road from {a} leads to {b}.") for at, (a, b) in enumerate(pairs)]
    embed_model = MockEmbedding(embed_dim=4)
    return PropertyGraphIndex(chunks, kg_extractors=[Roads()], embed_model=embed_model, llm=MockLLM(), use_async=False)


def test_a_property_graph_is_an_index(graph_index):
    encoder = LlamaIndexEncoder(MockEmbedding(embed_dim=4))
    index = index_from_property_graph(graph_index.property_graph_store, encoder=encoder)
    assert list(index.passage_ids) == ["c0", "c1", "c2", "c3", "c4"]
    assert set(index.entity_names) == {*CHAIN, "Lima", "Quito"}
    node = {name: 5 + at for at, name in enumerate(index.entity_names)}
    said = [(index.entity_names[h], index.entity_names[t]) for h, _, t in index.facts.rows.tolist()]
    assert sorted(said) == sorted([*pairwise(CHAIN), ("Lima", "Quito")])
    assert set(index.graph.edge_type_names) == {"LEADS_TO", "MENTIONS"}
    ppr = hf.ppr(index.graph, [{node["Ankara"]: 1.0}]).scores[0]
    assert ppr[0] > ppr[1] > ppr[2] > 0  # chunks along the chain
    assert ppr[4] == 0
    np.testing.assert_allclose(np.linalg.norm(np.asarray(index.vectors, np.float32), axis=1), 1, rtol=1e-6)
    again = index_from_property_graph(graph_index.property_graph_store, encoder=encoder)
    assert index.checksum == again.checksum
    with refused(InputError, "empty", "graph_store"):
        index_from_property_graph(SimplePropertyGraphStore())


def test_the_retriever_of_a_property_graph(graph_index):
    store = graph_index.property_graph_store
    walking = HopfusePGRetriever(store, similarity_top_k=2, include_text=False)
    found = walking.retrieve("Where does the road from Ankara lead?")
    assert [one.node.text for one in found] == ["Ankara -> LEADS_TO -> Bergen", "Bergen -> LEADS_TO -> Cusco"]
    assert [one.node.ref_doc_id for one in found] == ["c0", "c1"]
    assert found[0].score > found[1].score > 0
    assert seen(asyncio.run(walking.aretrieve("Where does the road from Ankara lead?")))[0][1] == found[0].node.text
    retriever = graph_index.as_retriever(sub_retrievers=[HopfusePGRetriever(store, similarity_top_k=2)])
    texts = [one.node.text for one in retriever.retrieve("Where does the road from Ankara lead?")]
    assert texts[0].endswith("Ankara -> LEADS_TO -> Bergen\n\nThe road from Ankara leads to Bergen.")
    assert len(texts) == 2
    only = HopfusePGRetriever(store, allow=["c4"], include_text=False)
    assert [one.node.text for one in only.retrieve("The road from Lima?")] == ["Lima -> LEADS_TO -> Quito"]


def test_a_served_index_walks_the_property_graph(graph_index, tmp_path):
    pytest.importorskip("uvicorn", reason="hopfuse serve needs the extra serve")
    store = graph_index.property_graph_store
    index_from_property_graph(store).save(tmp_path / "index")
    question = "Where does the road from Ankara lead?"
    expected = HopfusePGRetriever(store, tmp_path / "index", include_text=False).retrieve(question)
    with served(tmp_path / "index") as url:
        found = HopfusePGRetriever(store, url, include_text=False).retrieve(question)
    assert [(one.node.text, one.score) for one in found] == [(one.node.text, one.score) for one in expected]
    assert expected
    with refused(InputError, "conflict", "encoder"):
        HopfusePGRetriever(store, url, encoder=LlamaIndexEncoder(MockEmbedding(embed_dim=2)))


def test_a_store_that_is_not_in_memory_is_asked_in_batches(graph_index):
    """A store of which only the abstract methods are known."""

    class Remote(SimplePropertyGraphStore):
        graph = property(lambda self: None)

        def __init__(self, inner):
            self.inner, self.asked = inner, []

        def get(self, properties=None, ids=None):
            return self.inner.get(properties, ids)

        def get_triplets(self, entity_names=None, relation_names=None, properties=None, ids=None):
            self.asked.append(len(ids))
            return self.inner.get_triplets(entity_names, relation_names, properties, ids)

    store = Remote(graph_index.property_graph_store)
    assert index_from_property_graph(store).checksum == index_from_property_graph(store.inner).checksum
    assert store.asked == [12]


def test_a_source_that_is_not_a_chunk_is_not_a_passage():
    store = SimplePropertyGraphStore()
    store.upsert_nodes([ChunkNode(text="Ada wrote notes.", id_="a"), EntityNode(name="Ada"), EntityNode(name="notes")])
    said = {"triplet_source_id": "Ada"}
    store.upsert_relations([Relation(label="wrote", source_id="Ada", target_id="notes", properties=said)])
    index = index_from_property_graph(store)
    assert (index.num_passages, index.num_entities) == (1, 2)
    assert len(index.facts.rows) == 0
    assert len(index.graph.edges()[0]) == 1  # between the entities


def test_a_chunk_without_triplets_comes_as_it_is():
    store = SimplePropertyGraphStore()
    store.upsert_nodes([ChunkNode(text="A quiet road.", id_="a"), ChunkNode(text="The sea.", id_="b")])
    found = HopfusePGRetriever(store, similarity_top_k=1).retrieve("Which road?")
    assert [(one.node.node_id, one.node.text) for one in found] == [("a", "A quiet road.")]


def test_an_embedding_model_is_an_encoder():
    encoder = LlamaIndexEncoder(MockEmbedding(embed_dim=3), normalize=False)
    assert (encoder.name, encoder.dim) == ("llama-index/unknown", 3)
    rows = encoder.encode_passages(["a", "b"])
    assert (rows.dtype, rows.shape, rows.tolist()) == (np.float32, (2, 3), [[0.5] * 3] * 2)
    assert encoder.encode_queries([]).shape == encoder.encode_passages([]).shape == (0, 3)
    with refused(InputError, "shape", "vectors"):
        LlamaIndexEncoder(MockEmbedding(embed_dim=3), dim=4).encode_queries(["a"])


# ---- The vector store ------------------------------------------------------------------------------------------------

NO_MODEL = MockEmbedding(embed_dim=1)


def inserted(index):
    """Return a function that inserts a turn as a node."""
    return lambda id, text, metadata: index.insert_nodes([TextNode(id_=id, text=text, metadata=metadata)])


@pytest.mark.parametrize("has_vectors", [False, True])
def test_a_node_is_found_right_after_its_insertion(tmp_path, has_vectors):
    model = Hashed() if has_vectors else NO_MODEL
    encoder = LlamaIndexEncoder(model) if has_vectors else None
    store = HopfuseVectorStore(tmp_path / "memory", encoder=encoder)
    index = VectorStoreIndex.from_vector_store(store, embed_model=model)
    retriever, own = index.as_retriever(similarity_top_k=4), HopfuseRetriever(store, similarity_top_k=4)

    def ask(question):
        found = retriever.retrieve(question)
        assert seen(own.retrieve(question)) == seen(found)
        return [one.node_id for one in found]

    check_reads_its_writes(inserted(index), ask, lambda id: index.delete_nodes([id]))
    filters = MetadataFilters(filters=[MetadataFilter(key="user", value="b")])
    assert len(store.get_nodes()) == 180
    assert len(store.get_nodes(filters=filters)) == 80
    assert [one.node_id for one in store.get_nodes(["turn 2", "no", "turn 3"], filters)] == ["turn 3"]
    store.delete_nodes(["turn 2", "turn 3"], filters)
    store.delete_nodes(["turn 4", "no"])
    assert [one.node_id for one in store.get_nodes(["turn 2", "turn 3", "turn 4"])] == ["turn 2"]
    store.delete_nodes(filters=filters)
    assert len(store.get_nodes()) == 99
    with refused(InputError, "missing", "node_ids"):
        store.delete_nodes()
    store.clear()
    assert retriever.retrieve("courier") == store.get_nodes() == []


class Hashed(MockEmbedding):
    """Vectors that depend on the text."""

    def __init__(self):
        super().__init__(embed_dim=8)

    def _get_text_embedding(self, text):
        return np.random.default_rng(list(text.encode())).normal(size=8).tolist()

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)


def test_a_node_is_found_right_after_its_insertion_by_a_server(writable_url):
    index = VectorStoreIndex.from_vector_store(HopfuseVectorStore(writable_url), embed_model=NO_MODEL)
    retriever = index.as_retriever(similarity_top_k=4)

    def ask(question):
        return [one.node_id for one in asyncio.run(retriever.aretrieve(question))]

    check_reads_its_writes(inserted(index), ask, lambda id: index.delete_nodes([id]), count=20)


def test_documents_are_inserted_and_deleted_with_their_nodes(tmp_path):
    store = HopfuseVectorStore(tmp_path / "memory")
    index = VectorStoreIndex.from_vector_store(store, embed_model=NO_MODEL)
    for name, text in (("ada", "Ada wrote notes."), ("babbage", "Babbage built the engine.")):
        index.insert(Document(id_=name, text=text, metadata={"year": 1843}))
    (node,) = HopfuseRetriever(store).retrieve("engine")
    (kept,) = store.get_nodes([node.node_id])
    assert (kept.text, kept.metadata, kept.ref_doc_id) == ("Babbage built the engine.", {"year": 1843}, "babbage")
    (found,) = index.as_retriever(doc_ids=["ada"]).retrieve("Who built the engine, who wrote notes?")
    assert found.text == "Ada wrote notes."
    query = VectorStoreQuery(query_str="engine notes", similarity_top_k=9, node_ids=[kept.node_id], doc_ids=["ada"])
    assert store.query(query).ids == []
    query = VectorStoreQuery(query_str="engine notes", similarity_top_k=9, node_ids=[kept.node_id])
    assert store.query(query).ids == asyncio.run(store.aquery(query)).ids == [kept.node_id]
    index.delete_ref_doc("babbage")
    assert [one.ref_doc_id for one in store.get_nodes()] == ["ada"]
    assert asyncio.run(store.async_add([kept])) == [kept.node_id]
    assert len(store.get_nodes()) == 2
    with refused(InputError, "missing", "query_str"):
        store.query(VectorStoreQuery(query_embedding=[1.0]))
    with refused(InputError, "choice", "mode", given="mmr"):
        store.query(VectorStoreQuery(query_str="engine", mode="mmr"))


def test_a_folder_is_followed(tmp_path):
    small_index().save(tmp_path)
    follower, latest = HopfuseRetriever(tmp_path), HopfuseRetriever(tmp_path, at_least="latest")
    id, question = add_elsewhere(tmp_path, 0)
    assert id not in [one.node_id for one in follower.retrieve(question)]
    assert latest.retrieve(question)[0].node_id == asyncio.run(latest.aretrieve(question))[0].node_id == id
    fusion = HopfuseFusion(source=tmp_path, options={"method": "rrf"}, at_least="latest")
    assert fusion.postprocess_nodes([], query_str=question)[0].node_id == id
    walking = HopfusePGRetriever(SimplePropertyGraphStore(), tmp_path, include_text=False, at_least=1)
    assert walking.retrieve(question)[0].text == turn(0)[1]
    follower.refresh()
    assert follower.retrieve(question)[0].node_id == id
    store = HopfuseVectorStore(tmp_path, at_least="latest")
    store.close()
    id, question = add_elsewhere(tmp_path, 1)
    assert store.query(VectorStoreQuery(query_str=question)).ids == [id]
