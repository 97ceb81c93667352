"""Searches of a retriever: gaps, documents, rerankers, variants, live indexes, copies and threads."""

from __future__ import annotations

import pickle
import shutil
import sys
import threading
import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import hopfuse as hf
import numpy as np
import processes
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import QuestionMatcher
from refusals import refused
from retriever.shapes import NAMES, QUESTION, ROWS, ByLength, Letters, built, leg, own_recipe, parts

FACTS = built("vectors", "graph", "facts")
ASKED = [QUESTION, "Which river flows through London?", "Ada Lovelace", "who was charles babbage"]


ONE = np.ones((1, 6), np.float32)


def ids(found: Any) -> list[list[Any]]:
    return [[hit.id for hit in row] for row in found]


def same(one: Any, other: Any) -> bool:
    """Whether two results have the same hits, bit for bit."""
    return one.hits.ids.tolist() == other.hits.ids.tolist() and one.hits.scores.tolist() == other.hits.scores.tolist()


# ---- Questions -------------------------------------------------------------------------------------------------------


def test_one_question_is_a_batch_of_one_and_gaps_are_filled() -> None:
    encoder = Letters()
    retriever = hf.Retriever(FACTS, encoder=encoder)
    whole = retriever.search(ASKED, k=3)
    assert ids(retriever.search(ASKED[0], k=3)) == ids(whole)[:1]
    vectors = encoder.encode_queries(ASKED)
    some, named = [vectors[0], None, vectors[2], None], QuestionMatcher(FACTS).match(ASKED)
    assert same(retriever.search(ASKED, vectors=some, entities=[None, named[1], None, named[3]], k=3), whole)
    given = retriever.search([None], vectors=vectors[:1], entities=[["Engine"]], k=3)
    assert ids(given) == ids(whole)[:1]


def test_no_questions_have_no_hits() -> None:
    assert hf.Retriever(FACTS, encoder=FlatIfEmpty()).search([], k=3).hits.shape == (0, 3)


class FlatIfEmpty(Letters):
    """An encoder whose vectors of no texts have no dimension."""

    def encode_queries(self, texts: Any) -> Any:
        return Letters.encode_queries(self, texts) if texts else np.array([])


def test_prepared_inputs_are_those_that_a_search_makes() -> None:
    encoder = Letters()
    retriever = hf.Retriever(FACTS, encoder=encoder)
    vectors, entities = retriever.prepare(ASKED)
    assert vectors.shape == (4, 6)
    assert entities is not None
    assert same(retriever.search(vectors=vectors, entities=entities), retriever.search(ASKED))
    own, named = retriever.prepare(ASKED, vectors=[None, np.ones(6), None, None], entities=[["Ada"], None, [1], None])
    assert own[1].tolist() == [1] * 6
    assert own[0].tolist() == vectors[0].tolist()
    assert named is not None
    assert (named[0], named[2]) == (["Ada"], [1])
    assert [match.surface for match in named[1]] == [match.surface for match in entities[1]]
    assert hf.Retriever(built()).prepare(ASKED, vectors=vectors) == (None, None)
    with refused(InputError, "shape", "vectors[1]", given=5):
        retriever.prepare(ASKED, vectors=[None, np.ones(5), None, None])


# ---- Documents and rerankers -----------------------------------------------------------------------------------------


def test_a_document_has_at_most_so_many_hits_and_equal_texts_one() -> None:
    retriever = hf.Retriever(built(), words="fts5")
    asked = "the Engine in London, the Thames"
    whole = ids(retriever.search(asked, k=4))[0]
    assert set(whole) == {"a", "b", "c", "d"}
    found = retriever.search(asked, k=4, per_document=1)
    first = next(one for one in whole if one in "ab")
    assert ids(found) == [[one for one in whole if one in (first, "c")]]
    assert found.hits.counts.tolist() == [2]
    assert ids(retriever.search(asked, k=4, per_document=2)) == [[one for one in whole if one != "d"]]
    assert ids(retriever.search(asked, k=1, per_document=1)) == [whole[:1]]


def test_passages_without_a_document_are_limited_only_by_their_texts() -> None:
    rows = [{key: value for key, value in row.items() if key != "document"} for row in ROWS]
    retriever = hf.Retriever(hf.Index.build(passages=rows), words="fts5")
    assert sorted(ids(retriever.search("Engine London Thames", k=4, per_document=1))[0]) == ["a", "b", "c"]


def test_passages_without_texts_are_not_equal() -> None:
    rows = [{"title": title, "text": ""} for title in ("Ada", "Babbage", "Thames")]
    vectors = Letters().encode_passages(["Ada", "Babbage", "Thames"])
    retriever = hf.Retriever(hf.Index.build(passages=rows, vectors=vectors), encoder=Letters(), words="none")
    assert len(ids(retriever.search("Ada", per_document=1))[0]) == 3


def test_hits_of_a_document_are_limited_among_the_allowed_passages() -> None:
    retriever = hf.Retriever(FACTS, encoder=Letters())
    for scope in ("isolated", "results"):
        found = retriever.search(ASKED, k=4, per_document=1, allow=["b", "d"], allow_scope=scope)
        assert all(set(row) <= {"b", "d"} for row in ids(found))
        assert found.hits.counts.tolist() == [len(row) for row in ids(found)]


def test_entities_have_no_documents() -> None:
    with refused(InputError, "unsupported", "per_document"):
        hf.Retriever(FACTS, "triple-hybrid", encoder=Letters()).search(QUESTION, per_document=1)


def test_documents_are_limited_as_far_as_a_recipes_pool_reaches() -> None:
    retriever = hf.Retriever(FACTS, "policy-rag", config={"reranking": {"pool": 2}}, encoder=Letters())
    assert retriever.recipe.reach == 2
    pool = ids(retriever.search(ASKED, k=2))
    for row, found in zip(pool, ids(retriever.search(ASKED, k=2, per_document=1)), strict=True):
        assert found == (row[:1] if set(row) in ({"a", "b"}, {"c", "d"}) else row)


def test_a_reranker_orders_the_first_hits_anew() -> None:
    reranked = hf.Retriever(FACTS, encoder=Letters(), reranker=ByLength())
    found = reranked.search(ASKED, k=4)
    lengths = {row["id"]: len(row["text"]) for row in ROWS}
    assert [[lengths[id] for id in row] for row in ids(found)] == [sorted(lengths.values())] * len(ASKED)
    assert ids(reranked.search(ASKED, k=1)) == [row[:1] for row in ids(found)]
    assert ids(reranked.search(ASKED, k=4, per_document=1)) == [["c", "a"]] * len(ASKED)
    with refused(InputError, "missing", "questions"):
        reranked.search(vectors=np.ones((1, 6)), entities=[[0]])
    assert ids(reranked.variant("triple-hybrid").search(QUESTION, k=1)) != []


def test_a_reranker_leaves_as_many_hits_as_asked_for() -> None:
    rows = [{"text": f"The sea, number {number}."} for number in range(70)]
    reranked = hf.Retriever(hf.Index.build(passages=rows), words="fts5", reranker=ByLength(), lexical_k=70)
    assert reranked.search("sea", k=60).hits.counts.tolist() == [60]
    assert reranked.search("sea", k=3).hits.counts.tolist() == [3]


# ---- Variants --------------------------------------------------------------------------------------------------------


def test_variants_share_the_encoder_the_names_and_the_vectors_of_facts() -> None:
    encoder = Letters()
    retriever = hf.Retriever(FACTS, "policy-rag", encoder=encoder)
    texts = FACTS.facts.texts(FACTS.entity_names)  # type: ignore[union-attr]
    assert encoder.passages == dict.fromkeys(texts, 1)
    others = [
        retriever.variant("guided-walk"),
        retriever.variant(),
        retriever.variant(config={"walk": {"damping": 0.6}}),
    ]
    others.append(others[0].variant("policy-rag"))
    for other in others:
        other.search(ASKED)
        assert other.encoder is retriever.encoder
    assert encoder.passages == dict.fromkeys(texts, 1)
    assert same(others[1].search(ASKED), retriever.search(ASKED))
    assert same(others[0].search(ASKED), own_recipe(FACTS, Letters()).search(ASKED))


def test_another_state_encodes_new_facts_alone() -> None:
    encoder = Letters()
    retriever = hf.Retriever(FACTS, "policy-rag", encoder=encoder)
    more = [{"head": "Ada Lovelace", "relation": "knew", "tail": "Charles Babbage", "passage": 0}]
    arguments = parts("vectors", "graph", "facts")
    later = hf.Index.build(**{**arguments, "facts": [*arguments["facts"], *more]})
    before = dict(encoder.passages)
    found = retriever.of_state(later)
    assert found.index is later
    assert encoder.passages == {**before, "Ada Lovelace knew Charles Babbage": 1}
    assert same(found.search(ASKED), hf.Retriever(later, "policy-rag", encoder=Letters()).search(ASKED))
    assert retriever.index is FACTS


def test_options_of_a_variant_change_those_of_the_retriever() -> None:
    retriever = hf.Retriever(FACTS, "phase-graph", encoder=Letters(), alpha=0.3, method="rrf")
    config = retriever.variant(dense_k=7, method={"rank_constant": 10}).recipe.config
    assert (config.alpha, config.dense_k) == (0.3, 7)
    assert config.method.rank_constant == 10
    assert retriever.variant("guided-walk").recipe.config == hf.recipes.GuidedWalkConfig()
    assert retriever.variant("phase-graph").recipe.config == retriever.recipe.config
    whole = hf.recipes.PhaseGraphConfig(alpha=0.9)
    assert retriever.variant(config=whole).recipe.config == whole
    with refused(InputError, "unknown", "dampening"):
        retriever.variant(dampening=1)


def test_a_variant_reads_words_only_if_its_recipe_does() -> None:
    retriever = hf.Retriever(FACTS, "hybrid-rrf", words="fts5", encoder=Letters())
    assert retriever.variant("guided-walk").words is retriever.words
    assert retriever.variant("policy-rag").words is None
    assert retriever.variant(words="none").words is None
    own = leg(FACTS)
    assert retriever.variant("phase-graph", words=own).words is own


def test_a_variant_may_encode_by_another_encoder() -> None:
    first, second = Letters(), Letters()
    retriever = hf.Retriever(FACTS, encoder=first)
    other = retriever.variant(encoder=second)
    other.search(ASKED)
    assert not first.queries
    assert {*ASKED[:3]} <= {*second.queries}
    assert same(pickle.loads(pickle.dumps(other)).search(ASKED), retriever.search(ASKED))


# ---- Live indexes ----------------------------------------------------------------------------------------------------


#: Commits passages with the given ids.
ADD = """
import sys, hopfuse as hf
with hf.Index.open(sys.argv[1], writable=True) as live:
    for id in sys.argv[2:]:
        with live.change() as change:
            change.add_passages([{"id": id, "text": "Grace Hopper wrote a compiler."}])
"""


def add_elsewhere(folder: Path, *ids: str) -> None:
    """Add passages in another process, each by a commit."""
    processes.run([sys.executable, "-c", ADD, str(folder), *ids], check=True)


def test_a_retriever_searches_what_its_process_has_committed(tmp_path: Path) -> None:
    built("graph").save(tmp_path)
    asked = "Who wrote a compiler?"
    with hf.Index.open(tmp_path, writable=True) as live:
        (tmp_path.parent / "link").symlink_to(tmp_path, target_is_directory=True)
        readers = [hf.Retriever(live, words="fts5"), hf.Retriever.open(tmp_path, words="fts5")]
        readers += [hf.Retriever.open(tmp_path.parent / "link", words="fts5"), readers[1].variant(rank_constant=30)]
        with live.change() as change:
            change.add_passages([{"id": "e", "text": "Grace Hopper wrote a compiler."}])
        for reader in readers:
            found = reader.search(asked, k=1)
            assert (ids(found), found.seq, reader.index.seq) == ([["e"]], change.seq, change.seq)
        with live.change() as change:
            change.delete_passages(["e"])
        for reader in readers:
            assert ids(reader.search(asked, k=1)) == [["a"]]
            assert reader.search(asked, k=1, at_least=change.seq).seq == reader.refresh() == change.seq
        with pytest.raises(TimeoutError):
            readers[1].search(asked, at_least=99, timeout=0.01)
        live.compact()
        assert [reader.search(asked).seq for reader in readers] == [change.seq] * 4


def test_threads_search_what_they_have_committed(tmp_path: Path) -> None:
    built("graph").save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live, ThreadPoolExecutor(4) as pool:
        shared = hf.Retriever(live, words="fts5")

        def work(thread: int) -> None:
            own = hf.Retriever.open(tmp_path, words="fts5")
            for at in range(6):
                name = f"word{thread}x{at}"
                with live.change() as change:
                    change.add_passages([{"id": name, "text": f"The {name} is here."}])
                for retriever in (shared, own):
                    hits = retriever.search(name, k=1)
                    assert (hits[0][0].id, hits.seq >= (change.seq or 0)) == (name, True)

        list(pool.map(work, range(4)))
        assert shared.index.num_passages == len(ROWS) + 24


def test_changes_of_another_process_are_searched_when_they_are_asked_for(tmp_path: Path) -> None:
    built("graph").save(tmp_path)
    retriever = hf.Retriever.open(tmp_path, words="fts5")
    asked = "Who wrote a compiler?"
    add_elsewhere(tmp_path, "e", "f")
    assert (ids(retriever.search(asked, k=1)), retriever.index.seq) == ([["a"]], 0)
    found = retriever.search(asked, k=2, at_least="latest")
    assert (ids(found), found.seq) == ([["e", "f"]], 2)
    add_elsewhere(tmp_path, "g")
    assert retriever.search(asked, at_least=2).seq == 2
    assert retriever.search(asked, at_least=3).seq == retriever.search(asked).seq == 3
    add_elsewhere(tmp_path, "h")
    assert retriever.refresh() == 4
    for given, code in (("newest", "choice"), (1.5, "range"), (-1, "range"), (True, "range")):
        with refused(InputError, code, "at_least", given=given):
            retriever.search(asked, at_least=given)
    with refused(InputError, "unsupported", "at_least", given="latest"):
        hf.Retriever(hf.Index.open(tmp_path), words="fts5").search(asked, at_least="latest")


def test_a_closed_writer_follows_the_directory(tmp_path: Path) -> None:
    built("graph").save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        retriever = hf.Retriever(live, words="fts5")
        with live.change() as change:
            change.add_passages([{"id": "e", "text": "Grace Hopper wrote a compiler."}])
    assert retriever.search("compiler").seq == 1
    add_elsewhere(tmp_path, "f")
    assert retriever.search("compiler", at_least="latest").seq == 2
    with hf.Index.open(tmp_path, writable=True) as other, other.change() as change:
        change.delete_passages(["e", "f"])
    assert (retriever.search("compiler").seq, retriever.index.num_passages) == (3, len(ROWS))


def test_a_directory_that_is_made_anew_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    for id in "ef":
        built("graph").save(folder)
        with hf.Index.open(folder, writable=True) as live:
            retriever = hf.Retriever(live, words="fts5")
            for letter in (id, f"{id}2"):
                with live.change() as change:
                    change.add_passages([{"id": letter, "text": "Grace Hopper wrote a compiler."}])
                assert ids(retriever.search("compiler", k=2))[0][-1] == letter
        shutil.rmtree(folder)


class Reading:
    """A language model that answers with the passages that it is given."""

    def ask(self, prompts: Any, schema: Any, *, check: Any) -> list[str]:
        return [check({"answer": prompt}) for prompt in prompts]


def test_answers_read_the_passages_that_were_searched(tmp_path: Path) -> None:
    FACTS.save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        retriever = hf.Retriever(live, "policy-rag", encoder=Letters(), llm=Reading())
        found = retriever.search("Who built the Engine in London?", k=1)
        first = found[0][0].text
        assert first in retriever.answer("Who built the Engine in London?", found)[0]
        with live.change() as change:
            change.delete_passages(["a", "b"])
        retriever.refresh()
        assert first in retriever.answer("Who built the Engine in London?", found)[0]


def pool_of_one(call: Callable[[], Any]) -> Any:
    """Return what a call returns on another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_thread_that_waited_searches_the_last_state(tmp_path: Path) -> None:
    built("graph").save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live, ThreadPoolExecutor(1) as pool:
        retriever = hf.Retriever(live, words="fts5")
        with retriever._lock:
            for id in "ef":
                with live.change() as change:
                    change.add_passages([{"id": id, "text": "Grace Hopper wrote a compiler."}])
                live.refresh()
                if id == "e":
                    waiting = pool.submit(retriever.search, "compiler")  # for the change, which is this process's
                    time.sleep(0.1)
            assert retriever.search("compiler").seq == change.seq
        assert waiting.result().seq == change.seq
        assert retriever.refresh() == change.seq


def test_a_thread_need_not_wait_for_another_processs_changes(tmp_path: Path) -> None:
    built("graph").save(tmp_path)
    live = hf.Index.open(tmp_path, live=True)
    retriever = hf.Retriever(live, words="fts5")
    add_elsewhere(tmp_path, "e")
    assert live.refresh().seq == 1
    with retriever._lock:  # while this thread makes the new state, another is answered from the state before
        assert pool_of_one(lambda: retriever.search("compiler").seq) == 0
        assert retriever.search("compiler").seq == 1


def test_a_leg_of_one_state_is_refused_for_a_live_index(tmp_path: Path) -> None:
    index = built("graph")
    index.save(tmp_path)
    with refused(InputError, "conflict", "words"):
        hf.Retriever.open(tmp_path, words=leg(index))
    with refused(InputError, "conflict", "words"):
        hf.Retriever.open(tmp_path).variant("hybrid-rrf", words=leg(index))
    with refused(InputError, "conflict", "names"):
        hf.Retriever.open(tmp_path, names=OneByOne())
    assert hf.Retriever.open(tmp_path, names=QuestionMatcher(index)).search(QUESTION, k=1)[0]
    given = hf.Retriever(index, words=leg(index))
    assert given.of_state(index).words is given.words
    with refused(InputError, "conflict", "words"):
        given.of_state(built())


def test_a_later_state_is_searched_without_an_encoder_that_is_not_wanted(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    encoder = hf.encoders.open_encoder("wordllama:64")
    hf.Index.build(passages=[{"id": "a", "text": "The sea."}], encoder=encoder).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        retriever = hf.Retriever(live, encoder="none", words="none")
        with live.change() as change:
            change.add_passages([{"id": "b", "text": "A lake."}], vectors=encoder.encode_passages(["A lake."]))
        assert retriever.refresh() == change.seq
        assert retriever.encoder is None
        with refused(InputError, "missing", "encoder"):
            retriever.search("the sea")


# ---- Copies and threads ----------------------------------------------------------------------------------------------


def test_copies_answer_alike(tmp_path: Path) -> None:
    FACTS.save(tmp_path)
    options: dict[str, Any] = {"encoder": Letters(), "words": "fts5", "tau": 0.4, "threads": 1}
    in_memory = hf.Retriever(FACTS, "guided-walk", **options)
    opened = hf.Retriever(hf.Index.open(tmp_path), "guided-walk", **options)
    live = hf.Retriever.open(tmp_path, "guided-walk", **options)
    expected = in_memory.search(ASKED)
    for retriever in (in_memory, opened, live, in_memory.variant(), live.variant("guided-walk", tau=0.4)):
        pickled = pickle.dumps(retriever)
        copy = pickle.loads(pickled)
        assert same(copy.search(ASKED), expected)
        assert str(copy.describe()) == str(retriever.describe())
        assert (copy.threads, copy.recipe.config) == (1, retriever.recipe.config)
    assert len(pickle.dumps(live)) < len(pickle.dumps(in_memory))
    named = hf.Retriever(FACTS, encoder=Letters(), words="fts5", names="case-sensitive")
    for variant in (named.variant("triple-hybrid"), named.variant(lexical_weight=0, word_boost=0)):
        assert same(pickle.loads(pickle.dumps(variant)).search(ASKED), variant.search(ASKED))
    reranked = hf.Retriever(FACTS, encoder=Letters(), reranker=ByLength(), strict=True)
    assert same(pickle.loads(pickle.dumps(reranked)).search(ASKED), reranked.search(ASKED))


def test_threads_share_a_retriever_whose_encoder_is_not_safe_for_threads() -> None:
    encoder = Letters()
    retriever = hf.Retriever(FACTS, encoder=encoder, words="fts5")
    expected = [retriever.search(text, k=3) for text in ASKED]

    def ask(at: int) -> bool:
        turn = at % len(ASKED)
        variant = retriever.variant("policy-rag") if at % 7 == 0 else retriever
        found = variant.search(ASKED[turn], k=3)
        return variant is not retriever or same(found, expected[turn])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(160)))
    assert not encoder.together


class OneByOne:
    """A leg, a matcher and a reranker of a user's that is not safe for threads."""

    def __init__(self) -> None:
        self.together, self._inside = False, threading.Lock()

    def _alone(self) -> None:
        free = self._inside.acquire(blocking=False)
        self.together |= not free
        time.sleep(0.0005)
        if free:
            self._inside.release()

    def __reduce__(self) -> Any:
        return OneByOne, ()

    def search(self, questions: Any, k: int) -> hf.Hits:
        self._alone()
        return hf.Hits.from_lists([[(0, 1.0)] for _ in questions])

    def match(self, texts: Any) -> list[list[str]]:
        self._alone()
        return [["London"] for _ in texts]


def test_variants_and_states_share_the_lock_of_a_collaborator() -> None:
    own = OneByOne()
    first = hf.Retriever(FACTS, encoder=Letters(), words=own, names=own)
    every = [first, first.variant("hybrid-rrf"), first.of_state(FACTS), hf.Retriever(FACTS, "hybrid-rrf", words=own)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: every[at % 3].search(QUESTION), range(60)))
    assert not own.together
    assert len({id(one.words) for one in every}) == 1


def test_an_error_names_the_class_of_a_collaborator_of_the_users() -> None:
    retriever = hf.Retriever(FACTS, encoder=Letters(), words=OneByOne(), names=OneByOne())
    for options in ({}, {"entities": [["London"]]}):
        with refused(InputError, "unsupported", "words", kind="OneByOne"):
            retriever.search(QUESTION, allow=["a"], **options)


def test_recipes_of_a_retriever_can_be_pickled() -> None:
    own = OneByOne()
    retriever = hf.Retriever(FACTS, encoder=Letters(), words=own, names=own)
    copy = pickle.loads(pickle.dumps(retriever.recipe))
    asked: dict[str, Any] = {"queries": [QUESTION], "k": 3}
    assert same(copy.search(**asked), retriever.recipe.search(**asked))
    again = pickle.loads(pickle.dumps(retriever.variant(encoder=retriever.encoder)))
    assert same(again.search(QUESTION), retriever.search(QUESTION))


def test_a_retriever_warms_up_and_checks_without_an_encoder() -> None:
    retriever = hf.Retriever(FACTS, words="fts5")
    retriever.warm_up()
    assert set(retriever.check().lists) == set(
        retriever.search(vectors=np.ones((1, 6)), entities=[[0]], questions=["x"]).lists
    )
    assert retriever.sample()[0] == ROWS[0]["text"]
    with refused(InputError, "range", "k"):
        retriever.check(-1)
    assert retriever.recipe.hit_ids(FACTS)[0] == "a"
    assert NAMES[0] in FACTS.entity_names


def test_warming_up_loads_the_encoder_whose_name_the_index_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a server that is ready has its model, which takes longer than a search."""
    pytest.importorskip("wordllama")
    # A retriever of another test that is still alive would share its encoder, which may have its model.
    monkeypatch.setattr("hopfuse.retriever.encoding._ENCODERS._found", WeakValueDictionary())
    hf.Index.build(passages=[{"text": "The sea."}, {"text": "A river."}], encoder="wordllama:64").save(tmp_path)
    retriever = hf.Retriever.open(tmp_path)
    kept = retriever.encoder.wrapped
    assert "_loaded" not in vars(kept)
    retriever.search(["Which river?"], vectors=np.ones((1, 64)))
    assert "_loaded" not in vars(kept)
    retriever.warm_up()
    assert "_loaded" in vars(kept)


def test_what_a_search_adds_to_the_recipes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = hf.Retriever(FACTS, encoder=Letters(), threads=1)
    found = retriever.recipe.search(ASKED, k=3)
    monkeypatch.setattr(type(retriever.recipe), "search", lambda *asked, **options: found)
    assert retriever.search(ASKED, k=3) is found
    seconds = {
        "one question": timeit.repeat(lambda: retriever.search(QUESTION, k=3), number=100, repeat=9),
        "one vector": timeit.repeat(lambda: retriever.search(vectors=ONE, entities=[[1, 2]]), number=100, repeat=9),
    }
    assert all(min(times) > 0 for times in seconds.values())
    print({name: f"{1e4 * min(times):.1f} µs" for name, times in seconds.items()})


def test_without_a_matcher_names_are_not_said_to_be_unknown() -> None:
    retriever = hf.Retriever(FACTS, encoder=Letters(), names="none", strict=True)
    assert retriever.search([QUESTION, "Zzz?"], entities=[None, ["London"]], k=2).notes == [[], []]
    with refused(InputError, "range", "k"):
        retriever.search(QUESTION, k=0)


def test_options_belong_to_the_recipe_that_was_chosen() -> None:
    plain, later = hf.Index.from_texts(["Ada wrote."], encoder=Letters()), FACTS
    free = hf.Retriever(plain, encoder=Letters())
    chosen = hf.Retriever(plain, encoder=Letters(), rank_constant=7)
    assert (free.recipe.name, free.of_state(later).recipe.name) == ("hybrid-rrf", "guided-walk")
    assert chosen.of_state(later).recipe.config.rank_constant == 7
    assert chosen.describe().chosen


def test_a_variant_refuses_words_that_it_does_not_read_and_has_its_own_leg() -> None:
    retriever = hf.Retriever(FACTS, encoder=Letters(), words=leg(FACTS))
    with refused(InputError, "unused", "words"):
        retriever.variant(word_boost=0, lexical_weight=0, words="fts5")
    assert retriever.variant("triple-hybrid", mode="lexical").words is not retriever.words
