"""The Haystack component: in a pipeline saved and loaded as YAML, its filters, here and over ``hopfuse serve``."""

from __future__ import annotations

import asyncio

import hopfuse as hf
import numpy as np
import pytest
from adapters.frameworks import QUESTIONS, small_index
from adapters.memories import add_elsewhere, check_reads_its_writes, turn
from hopfuse.adapters.searcher import Searcher
from hopfuse.encoders import ArrayEncoder
from hopfuse.errors import InputError

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("haystack", reason="the adapter needs haystack-ai (extra haystack)")

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils import Secret
from haystack.utils.filters import document_matches_filter
from hopfuse.adapters.haystack import HopfuseDocumentStore, HopfuseRetriever
from refusals import refused


def seen(documents):
    return [(one.id, one.content, one.meta, one.score) for one in documents]


def told(hits):
    return [(hit.id, hit.text, {"title": hit.title, **hit.metadata}, hit.score) for hit in hits]


LATE = {
    "operator": "AND",
    "conditions": [
        {"field": "meta.tenant", "operator": "==", "value": "a"},
        {"field": "meta.number", "operator": ">=", "value": 2},
    ],
}


def test_a_document_is_the_hit(source):
    retriever = HopfuseRetriever(source, top_k=3)
    hits = Searcher(source).search(QUESTIONS, k=3)
    assert [seen(retriever.run(one)["documents"]) for one in QUESTIONS] == [told(row) for row in hits]
    assert seen(asyncio.run(retriever.run_async(QUESTIONS[0]))["documents"]) == told(hits[0])
    assert seen(retriever.run(QUESTIONS[0], top_k=1)["documents"]) == told(hits[0][:1])


def test_a_pipeline_saved_and_loaded_as_yaml(source):
    pipeline = Pipeline()
    pipeline.add_component("retriever", HopfuseRetriever(source, top_k=2, filters=LATE, options={"graph_k": 4}))
    pipeline.add_component("prompt", PromptBuilder("{% for one in documents %}{{ one.id }} {% endfor %}"))
    pipeline.connect("retriever.documents", "prompt.documents")
    expected = " ".join(
        hit.id
        for hit in Searcher(source, recipe="hybrid-rrf", options={"graph_k": 4}).search(
            QUESTIONS[:1], k=2, allow={"tenant": "a", "number__ge": 2}
        )[0]
    )
    assert expected
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["hopfuse.adapters.haystack"])
    for one in (pipeline, loaded):
        assert one.run({"retriever": {"query": QUESTIONS[0]}})["prompt"]["prompt"].strip() == expected
    assert loaded.dumps() == pipeline.dumps()


def test_the_key_of_a_server_is_saved_as_the_name_of_a_variable(monkeypatch, url):
    monkeypatch.setenv("HOPFUSE_TEST_KEY", "secret")
    component = HopfuseRetriever(url, key=Secret.from_env_var("HOPFUSE_TEST_KEY"), timeout=30.0, index="index")
    saved = component.to_dict()
    assert "secret" not in str(saved)
    loaded = HopfuseRetriever.from_dict(saved)
    assert loaded.key == component.key
    assert loaded.settings == component.settings
    assert loaded.run(QUESTIONS[0])["documents"]


def test_what_is_in_memory_runs_and_is_not_saved(folder):
    index = hf.Index.open(folder)
    for given in (index, Searcher(index), Searcher(folder)):
        component = HopfuseRetriever(given, top_k=1)
        assert len(component.run(QUESTIONS[0])["documents"]) == 1
        with refused(InputError, "unsupported", "source"):
            component.to_dict()
    assert HopfuseRetriever(folder).to_dict()["init_parameters"]["source"] == str(folder)
    with refused(InputError, "unsupported", "encoder"):
        HopfuseRetriever(str(folder), encoder=ArrayEncoder(2, queries={}, name="mine")).to_dict()


def test_notes_are_an_output(source):
    retriever = HopfuseRetriever(source)
    assert retriever.run(QUESTIONS[0])["notes"] == []
    assert len(retriever.run("Xyzzy?")["notes"]) == 1
    assert retriever.run("Xyzzy?") == asyncio.run(retriever.run_async("Xyzzy?"))


def test_what_a_searcher_has_already_is_not_given_again(folder):
    searcher = Searcher(folder)
    for name, value in (("recipe", "hybrid-rrf"), ("options", {"graph_k": 4}), ("encoder", 3), ("timeout", 1.0)):
        with refused(InputError, "conflict", name, other="source"):
            HopfuseRetriever(searcher, **{name: value})


def one(field, operator, value):
    return {"field": field, "operator": operator, "value": value}


FILTERS = [
    one("meta.tenant", "==", "a"),
    LATE,
    one("number", "!=", 2),
    one("meta.number", "not in", [1, 2]),
    one("meta.tenant", "==", None),
    one("meta.tenant", "!=", None),
    {"operator": "OR", "conditions": [one("meta.number", ">", 5), one("meta.number", "<=", 1)]},
    {"operator": "NOT", "conditions": [one("meta.number", "<", 5), one("meta.tenant", "==", "a")]},
    {"operator": "AND", "conditions": [LATE, {"operator": "NOT", "conditions": [one("meta.number", "in", [4, 7])]}]},
]


@pytest.mark.parametrize("filters", FILTERS)
def test_filters_mean_what_they_mean_to_haystack(filters):
    """A passage without metadata is among them: a value that is missing is unlike any other."""
    about = [{"tenant": "ab"[at % 2], "number": at} for at in range(8)] + [{}]
    rows = [{"id": str(at), "text": "a road", "metadata": one} for at, one in enumerate(about)]
    found = HopfuseRetriever(hf.Index.build(passages=rows), top_k=20).run("road", filters=filters)["documents"]
    own = [str(at) for at, meta in enumerate(about) if document_matches_filter(filters, Document(meta=meta))]
    assert sorted(one.id for one in found) == own
    assert 0 < len(own) < 9


def test_filters_that_are_none_or_too_much_for_a_server(url, folder):
    with refused(InputError, "syntax", "filters"):
        HopfuseRetriever(folder, filters={"field": "meta.number", "operator": "like", "value": 3})
    with refused(InputError, "unsupported", "allow"):
        HopfuseRetriever(url).run(QUESTIONS[0], filters=one("meta.number", "!=", 2))
    for wrong, error in (
        ("meta.number > 3", ("type", "filters", {"given": "str"})),
        ([LATE], ("type", "filters", {"given": "list"})),
        ({"operator": "OR", "conditions": [{}]}, ("syntax", "filters")),
        ({"operator": "AND", "conditions": []}, ("syntax", "filters")),
    ):
        with refused(InputError, *error):
            HopfuseRetriever(folder, filters=wrong)
    component = HopfuseRetriever(3)
    with refused(InputError, "type", "source", given="int"):
        component.warm_up()


# ---- The document store ----------------------------------------------------------------------------------------------


def written(store):
    """Return a function that writes a turn as a document."""

    def write(id, text, metadata):
        assert store.write_documents([Document(id=id, content=text, meta=metadata)]) == 1

    return write


def test_a_document_is_found_right_after_its_write(tmp_path):
    store = HopfuseDocumentStore(tmp_path / "memory")
    retriever = HopfuseRetriever(store, top_k=4)

    def ask(question):
        return [one.id for one in retriever.run(question)["documents"]]

    check_reads_its_writes(written(store), ask, lambda id: store.delete_documents([id]))
    assert store.count_documents() == asyncio.run(store.count_documents_async()) == 180
    filters = one("meta.user", "==", "b")
    assert store.count_documents_by_filter(filters) == len(store.filter_documents(filters)) == 80
    assert store.filter_documents(one("meta.number", "==", 3)) == [
        Document(id="turn 3", content=turn(3)[1], meta=turn(3)[2])
    ]
    assert store.delete_by_filter(filters) == 80
    asyncio.run(store.delete_documents_async(["turn 0", "no"]))
    assert len(asyncio.run(store.filter_documents_async())) == 99
    store.delete_all_documents()
    assert store.count_documents() == 0


def test_a_document_is_found_right_after_its_write_to_a_server(writable_url):
    store = HopfuseDocumentStore(writable_url)
    retriever = HopfuseRetriever(store, top_k=4)

    def ask(question):
        return [one.id for one in asyncio.run(retriever.run_async(question))["documents"]]

    check_reads_its_writes(written(store), ask, lambda id: store.delete_documents([id]), count=20)
    document = Document(id="turn 3", content="new")
    with pytest.raises(DuplicateDocumentError):
        store.write_documents([document])
    assert store.write_documents([document], DuplicatePolicy.SKIP) == 0
    assert store.count_documents() == 18


def test_what_is_done_with_documents_that_exist(tmp_path):
    store = HopfuseDocumentStore(tmp_path / "memory")
    first, second, other = (Document(id=id, content=text) for id, text in (("a", "one"), ("a", "two"), ("b", "three")))
    with pytest.raises(DuplicateDocumentError):
        store.write_documents([first, second])
    assert store.count_documents() == 0
    assert store.write_documents([first, second], DuplicatePolicy.SKIP) == 1
    assert store.filter_documents() == [first]
    assert asyncio.run(store.write_documents_async([second, other], DuplicatePolicy.SKIP)) == 1
    assert store.write_documents([first, second], DuplicatePolicy.OVERWRITE) == 1
    assert store.filter_documents() == [other, second]
    for policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
        with pytest.raises(DuplicateDocumentError):
            store.write_documents([Document(id="c", content="four"), other], policy)
    assert store.count_documents() == 2
    for wrong in (Document(id="d"), Document(id="d", blob=ByteStream(b"x"))):
        with refused(InputError, "unsupported", "documents[1]"):
            store.write_documents([first, wrong], DuplicatePolicy.OVERWRITE)
    with pytest.raises(FilterError):
        store.delete_by_filter(one("meta.none", "==", 3))


def test_embeddings_are_the_vectors_if_they_are_wanted(tmp_path):
    encoder = ArrayEncoder(2, passages={"road": [1.0, 0.0], "river": [0.0, 1.0]}, name="mine")
    documents = [Document(id=name, content=name, embedding=[0.6, 0.8]) for name in ("road", "river")]
    for embeddings, vectors in ((True, [[0.6, 0.8]] * 2), (False, [[1.0, 0.0], [0.0, 1.0]])):
        folder = tmp_path / str(embeddings)
        store = HopfuseDocumentStore(folder, embeddings=embeddings, encoder=encoder)
        store.write_documents(documents)
        assert (hf.Index.open(folder).vectors == np.float32(vectors)).all()


def test_a_store_is_saved_with_its_pipeline(tmp_path):
    store = HopfuseDocumentStore(str(tmp_path / "memory"), create={"metadata_types": {"user": "string"}})
    indexing, asking = Pipeline(), Pipeline()
    indexing.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
    asking.add_component("retriever", HopfuseRetriever(store, top_k=1, at_least="latest"))
    trusted = {"allowed_modules": ["hopfuse.adapters.haystack"]}
    indexing, asking = (Pipeline.loads(one.dumps(), **trusted) for one in (indexing, asking))
    for at in range(3):
        id, text, metadata, question = turn(at)
        assert indexing.run({"writer": {"documents": [Document(id=id, content=text, meta=metadata)]}})
        assert asking.run({"retriever": {"query": question}})["retriever"]["documents"][0].id == id
    assert "create" not in asking.dumps()
    with refused(InputError, "unsupported", "source"):
        HopfuseDocumentStore(hf.Index.build([])).to_dict()
    with refused(InputError, "conflict", "recipe"):
        HopfuseRetriever(store, recipe="hybrid-rrf")


def test_a_folder_is_followed(tmp_path):
    small_index().save(tmp_path)
    follower, latest = HopfuseRetriever(tmp_path), HopfuseRetriever(tmp_path, at_least="latest")
    assert follower.run("road")["documents"]
    id, question = add_elsewhere(tmp_path, 0)
    assert id not in [one.id for one in follower.run(question)["documents"]]
    assert latest.run(question)["documents"][0].id == id
    assert follower.run(question, at_least=1)["documents"][0].id == id
