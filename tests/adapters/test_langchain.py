"""The LangChain retriever: all its methods, over a local index and over ``hopfuse serve``."""

from __future__ import annotations

import asyncio

import hopfuse as hf
import numpy as np
import pytest
from adapters.frameworks import QUESTIONS, small_index
from adapters.memories import add_elsewhere, check_reads_its_writes, turn
from hopfuse.errors import EndpointError, FormatError, InputError

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("langchain_core", reason="the adapter needs langchain-core (extra langchain)")

from hopfuse.adapters.langchain import HopfuseRetriever, HopfuseVectorStore, LangChainEncoder
from hopfuse.adapters.searcher import Searcher
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import RunnableLambda
from pydantic import ValidationError
from refusals import check_error, refused


class Runs(BaseCallbackHandler):
    """Record what callbacks receive: questions, numbers of documents, errors."""

    def __init__(self):
        self.begun, self.ended, self.failed = [], [], []

    def on_retriever_start(self, serialized, query, **kwargs):
        self.begun.append((query, kwargs["name"]))

    def on_retriever_end(self, documents, **kwargs):
        self.ended.append(len(documents))

    def on_retriever_error(self, error, **kwargs):
        self.failed.append(type(error))


@pytest.fixture
def searches(monkeypatch):
    """The batches that reach a recipe or a server."""
    seen = []
    for name in ("search", "asearch"):
        own = getattr(Searcher, name)

        def spy(self, questions, own=own, name=name, **given):
            seen.append((name, tuple(questions)))
            return own(self, questions, **given)

        monkeypatch.setattr(Searcher, name, spy)
    return seen


def test_documents_have_the_fields_of_hits(source):
    retriever = HopfuseRetriever(source=source, k=2)
    documents = retriever.invoke(QUESTIONS[0])
    hits = Searcher(source).search([QUESTIONS[0]], k=2)[0]
    assert documents == [
        Document(id=hit.id, page_content=hit.text, metadata={"title": hit.title, **hit.metadata, "score": hit.score})
        for hit in hits
    ]
    assert documents[0].metadata["tenant"] == "a"
    assert documents[0].metadata["score"] > documents[1].metadata["score"] > 0
    other = HopfuseRetriever(source=source, k=1, score_key="relevance_score").invoke(QUESTIONS[0])
    assert [set(one.metadata) for one in other] == [{"title", "tenant", "number", "relevance_score"}]


def test_all_methods_find_the_same_documents(source, searches):
    retriever = HopfuseRetriever(source=source, k=3)
    each = [retriever.invoke(one) for one in QUESTIONS]
    searches.clear()
    assert retriever.batch(QUESTIONS) == each
    assert searches == [("search", tuple(QUESTIONS))]  # one search
    searches.clear()
    assert asyncio.run(retriever.abatch(QUESTIONS)) == each
    assert [name for name, _ in searches].count("asearch") == 1
    assert {questions for _, questions in searches} == {tuple(QUESTIONS)}

    async def ask():
        return await asyncio.gather(*map(retriever.ainvoke, QUESTIONS))

    assert asyncio.run(ask()) == each
    assert retriever.batch([]) == asyncio.run(retriever.abatch([])) == []
    chain = retriever | RunnableLambda(lambda documents: documents[0].id)
    assert chain.batch(QUESTIONS) == [documents[0].id for documents in each]


def test_a_call_overrides_k_and_the_filter(source):
    retriever = HopfuseRetriever(source=source, k=8, allow={"tenant": "a"})
    ids = {document.id for document in retriever.invoke(QUESTIONS[0])}
    assert ids
    assert ids <= {"p0", "p2", "p4", "p6"}
    assert {document.id for document in retriever.invoke(QUESTIONS[0], allow=["p5", "p3"])} <= {"p3", "p5"}
    assert len(retriever.invoke(QUESTIONS[0], k=1)) == 1
    one, two = retriever.batch(QUESTIONS[:2], k=1, allow=[{"tenant": "b"}, ["p6"]])
    assert [row[0].metadata["tenant"] for row in (one, two)] == ["b", "a"]
    assert two[0].id == "p6"
    assert asyncio.run(retriever.ainvoke(QUESTIONS[0], k=2, allow=["p0"]))[0].id == "p0"


def test_callbacks_get_one_run_per_question(source):
    retriever, refusing = HopfuseRetriever(source=source, k=2), HopfuseRetriever(source=source, allow=["no"])
    for name in ("batch", "abatch"):
        runs = Runs()
        called(retriever, name, QUESTIONS, {"callbacks": [runs], "run_name": "roads"})
        assert sorted(runs.begun) == sorted((one, "roads") for one in QUESTIONS)
        assert runs.ended == [2, 2, 2]
        runs = Runs()
        with pytest.raises(InputError) as caught:
            called(refusing, name, QUESTIONS[:1], {"callbacks": [runs]})
        assert (caught.value.code, caught.value.given) == ("unknown", "no")
        assert runs.failed == [InputError]


def called(retriever, name, *args, **given):
    """Return the result of a method, awaited if it is asynchronous."""
    found = getattr(retriever, name)(*args, **given)
    return found if name == "batch" else asyncio.run(waited(found))


async def waited(found):
    return await found


@pytest.mark.parametrize("name", ["batch", "abatch"])
def test_only_the_refused_question_of_a_batch_gets_the_error(name, source, searches):
    retriever, allow = HopfuseRetriever(source=source, k=1), [["p0"], ["no"], {"tenant": "b"}]
    first, error, last = called(retriever, name, QUESTIONS, return_exceptions=True, allow=allow)
    assert (first[0].id, last[0].metadata["tenant"]) == ("p0", "b")
    assert isinstance(error, InputError)
    assert (error.code, error.given) == ("unknown", "no")
    assert {asked for _, asked in searches} == {tuple(QUESTIONS), *((one,) for one in QUESTIONS)}
    first, error, last = called(retriever, name, [QUESTIONS[0], 3, QUESTIONS[2]], return_exceptions=True)
    assert [type(error), len(first), len(last)] == [InputError, 1, 1]
    with pytest.raises(InputError) as caught:
        called(retriever, name, QUESTIONS, allow=allow)
    assert (caught.value.code, caught.value.given) == ("unknown", "no")


@pytest.mark.parametrize("name", ["batch", "abatch"])
def test_errors_are_returned_with_return_exceptions(name, searches):
    retriever = HopfuseRetriever(source="http://127.0.0.1:9")  # nothing listens
    errors = called(retriever, name, QUESTIONS, return_exceptions=True)
    assert [type(one) for one in errors] == [EndpointError] * 3
    assert len(searches) == 1
    with refused(EndpointError, "connection"):
        called(retriever, name, QUESTIONS)


def test_an_invalid_source_is_refused():
    with pytest.raises(ValidationError) as caught:
        HopfuseRetriever(source=3)
    check_error(caught.value.errors()[0]["ctx"]["error"], InputError, "type", "source", given="int")


def test_a_searcher_is_used_unchanged(folder):
    searcher = Searcher(folder, recipe="hybrid-rrf", options={"graph_k": 1})
    hits = searcher.search(QUESTIONS[:1], k=8)[0]
    assert [one.id for one in HopfuseRetriever(source=searcher, k=8).invoke(QUESTIONS[0])] == [hit.id for hit in hits]


def test_notes_are_in_the_metadata_or_in_the_log(source, caplog):
    retriever = HopfuseRetriever(source=source, k=2)
    (hits,) = Searcher(source).search(["Xyzzy Ankara?"], k=2)
    assert [one.metadata.get("hopfuse_notes") for one in retriever.invoke(QUESTIONS[0])] == [None, None]
    assert not hits.notes
    documents, (none,) = retriever.invoke("Xyzzy?"), Searcher(source).search(["Xyzzy?"], k=2)
    notes = [str(note) for note in none.notes]
    assert [one.metadata["hopfuse_notes"] for one in documents] == [notes] * len(none)
    assert [notes[0] in line for line in caplog.messages] == ([] if none else [True])


def test_later_changes_are_read(tmp_path):
    small_index().save(tmp_path)
    retriever = HopfuseRetriever(source=str(tmp_path), k=1, allow={"tenant": "new"})
    with hf.Index.open(tmp_path, writable=True) as live, live.change() as change:
        about = {"tenant": "new", "number": 9}
        change.add_passages([{"id": "new", "text": "A road leads to Oslo.", "metadata": about}])
    assert [one.id for one in retriever.invoke("Oslo road?")] == ["new"]
    follower, latest = (HopfuseRetriever(source=str(tmp_path), k=1, at_least=one) for one in (None, "latest"))
    for at in range(3):
        id, question = add_elsewhere(tmp_path, at)
        assert id not in [one.id for one in follower.invoke(question)]
        assert latest.invoke(question)[0].id == latest.batch([question] * 2)[1][0].id == id
        assert asyncio.run(latest.ainvoke(question))[0].id == id
        if at == 0:
            assert follower.invoke(question, at_least="latest")[0].id == id
        elif at == 1:
            assert follower.invoke(question, at_least=3)[0].id == id
        else:
            follower.refresh()
            assert follower.invoke(question)[0].id == id


def test_unknown_options_are_refused(folder):
    with pytest.raises(ValidationError) as caught:
        HopfuseRetriever(source=str(folder), recipe="phase-graph")
    check_error(caught.value.errors()[0]["ctx"]["error"], InputError, "unknown", "recipe")
    retriever = HopfuseRetriever(source=str(folder))
    for name in ("invoke", "batch"):
        question = QUESTIONS[0] if name == "invoke" else QUESTIONS
        with refused(InputError, "unknown", "filter"):
            getattr(retriever, name)(question, filter={"tenant": "a"})


class Letters(Embeddings):
    """Counts of three letters in a text, negated for questions to distinguish them from passages."""

    model = "letters"

    def embed_documents(self, texts):
        return [[float(text.count(letter)) for letter in "abc"] for text in texts]

    def embed_query(self, text):
        return [-number for number in self.embed_documents([text])[0]]


def test_an_embedding_model_is_an_encoder():
    encoder = LangChainEncoder(Letters(), normalize=False)
    assert (encoder.name, encoder.dim, encoder.normalize) == ("langchain/letters", 3, False)
    assert encoder.encode_passages(["aab", "c"]).tolist() == [[2, 1, 0], [0, 0, 1]]
    assert encoder.encode_queries(["aab"]).tolist() == [[-2, -1, 0]]
    assert encoder.encode_queries([]).shape == encoder.encode_passages([]).shape == (0, 3)
    assert np.allclose(LangChainEncoder(Letters()).encode_passages(["aab"]), np.array([[2, 1, 0]]) / 5**0.5)
    assert LangChainEncoder(DeterministicFakeEmbedding(size=2)).name == "langchain/DeterministicFakeEmbedding"
    with refused(InputError, "shape", "vectors"):
        LangChainEncoder(Letters(), dim=4).encode_queries(["a"])


def test_documents_become_an_index():
    documents = [
        Document(id=name, page_content=name * 3, metadata={"year": 2000 + at}) for at, name in enumerate("abc")
    ]
    encoder = LangChainEncoder(DeterministicFakeEmbedding(size=8))
    rows = [{"id": one.id, "text": one.page_content, "metadata": one.metadata} for one in documents]
    index = hf.Index.from_texts(rows, encoder=encoder)
    retriever = HopfuseRetriever(source=Searcher(index, encoder=encoder), k=1)
    for one in documents:
        (found,) = retriever.invoke(one.page_content)
        assert (found.id, found.page_content, found.metadata["year"]) == (
            one.id,
            one.page_content,
            one.metadata["year"],
        )


# ---- The vector store ------------------------------------------------------------------------------------------------


def added(store):
    """Return a function that adds a turn as a document."""

    def add(id, text, metadata):
        assert store.add_documents([Document(id=id, page_content=text, metadata=metadata)]) == [id]

    return add


@pytest.mark.parametrize("has_vectors", [False, True])
def test_a_document_is_found_right_after_its_add(tmp_path, has_vectors):
    embedding = DeterministicFakeEmbedding(size=16) if has_vectors else None
    store = HopfuseVectorStore(tmp_path / "memory", embedding)
    assert store.embeddings is embedding
    retriever, own = store.as_retriever(search_kwargs={"k": 4}), HopfuseRetriever(source=store, k=4)

    def ask(question):
        documents = retriever.invoke(question)
        assert [one.id for one in own.invoke(question)] == [one.id for one in documents]
        return [one.id for one in documents]

    check_reads_its_writes(added(store), ask, lambda id: store.delete([id]))
    assert len(store.get_by_ids([turn(at)[0] for at in range(200)])) == 180
    store.close()
    again = HopfuseVectorStore(tmp_path / "memory", embedding)  # after a restart
    assert [one.id for one in again.similarity_search(turn(8)[3], k=1)] == [turn(8)[0]]


def test_a_document_is_found_right_after_its_add_to_a_server(writable_url):
    store = HopfuseVectorStore(writable_url)
    retriever = HopfuseRetriever(source=store, k=4)

    def ask(question):
        ids = [one.id for one in asyncio.run(store.asimilarity_search(question))]
        assert [one.id for one in retriever.invoke(question)] == ids
        return ids

    check_reads_its_writes(added(store), ask, lambda id: store.delete([id]), count=20)
    ids = [turn(at)[0] for at in range(20)]
    assert len(store.get_by_ids(ids)) == 18
    id, text, metadata, question = turn(3)
    assert store.similarity_search(question, allow={"user": "b"})[0].id == id
    assert store.add_texts([text + " It was late."], [metadata], ids=[id]) == [id]
    assert store.get_by_ids([id])[0].page_content == text + " It was late."
    assert store.delete(allow={"user": "a"})
    assert {one.metadata["user"] for one in store.get_by_ids(ids)} == {"b"}
    assert store.delete()
    assert store.get_by_ids(ids) == []


def test_documents_are_read_replaced_and_deleted_by_filters(tmp_path):
    store = HopfuseVectorStore.from_texts(
        ["A road.", "A river.", "The sea."], metadatas=[{"kind": "way"}, {"kind": "water"}, {"kind": "water"}],
        ids=["a", "b", "c"], source=tmp_path / "memory",
    )  # fmt: skip
    assert [one.id for one in store.similarity_search("road river", allow={"kind": "water"})] == ["b"]
    scored = store.similarity_search_with_score("river", k=1)
    assert (scored[0][0].id, scored[0][1] > 0) == ("b", True)
    assert store.add_texts(["A lake.", "A pond."], ids=["b", None])[0] == "b"
    assert [(one.page_content, one.metadata) for one in store.get_by_ids(["b", "no"])] == [("A lake.", {})]
    assert store.delete(allow={"kind": "water"})
    assert [one.id for one in store.get_by_ids(["a", "b", "c"])] == ["a", "b"]
    with refused(InputError, "unknown", "filter"):
        store.similarity_search("road", filter={"kind": "way"})
    with refused(InputError, "unknown", "where"):
        store.delete(where={"kind": "way"})
    with refused(InputError, "conflict", "ids"):
        store.delete(["a"], allow={"kind": "way"})
    with refused(InputError, "length", "ids", given=1):
        store.add_texts(["one", "two"], ids=["a"])


def test_a_store_is_shared_in_a_process_and_closed_for_others(tmp_path):
    first, second = HopfuseVectorStore(tmp_path / "memory"), HopfuseVectorStore(str(tmp_path / "memory"))
    first.add_texts(["A road."], ids=["a"])
    second.add_texts(["A river."], ids=["b"])
    assert [one.id for one in first.similarity_search("river")] == ["b"]
    first.close()
    with refused(InputError, "denied"):
        first.add_texts(["The sea."])
    second.add_texts(["A lake."], ids=["c"])
    second.close()
    id, question = add_elsewhere(tmp_path / "memory", 0)
    assert first.similarity_search(question, k=1, at_least="latest")[0].id == id
    with hf.Index.open(tmp_path / "memory", writable=True) as live:
        with refused(InputError, "busy", "directory"):
            HopfuseVectorStore(tmp_path / "memory")
        over = HopfuseVectorStore(live)
        over.add_texts(["A bay."], ids=["d"])
        assert first.similarity_search("bay", k=1)[0].id == "d"
    with refused(InputError, "denied"):
        HopfuseVectorStore(hf.Index.open(tmp_path / "memory", live=True))
    with refused(InputError, "type", "source", given="int"):
        HopfuseVectorStore(3)


def test_a_store_keeps_the_type_of_ids_and_makes_no_index_over_other_files(tmp_path):
    hf.Index.build([{"id": 7, "text": "A road."}, {"id": 8, "text": "A river."}]).save(tmp_path / "numbers")
    store = HopfuseVectorStore(tmp_path / "numbers")
    assert [one.id for one in store.get_by_ids(["7", "x", "9"])] == ["7"]
    assert store.delete(["8", "x"])
    assert store.similarity_search("river") == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with refused(FormatError, "missing"):
        HopfuseVectorStore(tmp_path / "other")
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["notes.txt"]
