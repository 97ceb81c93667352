"""The weight of direct retrieval: by the rarest seed, by the words of each hit, and the best direct hit kept."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse.errors import InputError
from hopfuse.recipes import GuidedWalk, HybridRRF, PhaseGraph
from hypothesis import given
from hypothesis import strategies as st
from recipes.worlds import random_questions, random_world
from refusals import refused

TEXTS = [
    "Ada wrote notes.",
    "Ada met Babbage.",
    "Babbage built an engine.",
    "The sea and the sea.",
    "A river of notes.",
]
ENTITIES = ["Ada", "Babbage", "sea"]
MENTIONS = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 2)]


def made(texts: list[str], mentions: list[tuple[int, int]], vectors: Any) -> hf.Index:
    edges = [{"src": p, "dst": len(texts) + e, "type": "context"} for p, e in mentions]
    rows = [{"text": text} for text in texts]
    return hf.Index.build(passages=rows, vectors=vectors, entities=ENTITIES, graph=edges, metric="cosine")


@pytest.fixture(scope="module")
def index() -> hf.Index:
    return made(TEXTS, MENTIONS, np.eye(5, dtype=np.float32) + 0.1)


def test_the_rarest_name_decides(index: hf.Index) -> None:
    recipe, vectors = GuidedWalk(index), np.ones((4, 5), np.float32)
    found = recipe.search(vectors=vectors, entities=[["Ada"], ["sea", "Ada"], [], ["nobody"]], trace=True)
    assert found.direct.tolist() == [2 / 14, 1 / 13, 1.0, 1.0]
    reasons = [trace["direct"]["reason"] for trace in found.traces]
    assert reasons == [
        "the rarest name, Ada, is in 2 passages: the walk leads",
        "the rarest name, sea, is in 1 passage: the walk leads",
        "the question names nothing: vectors and words lead",
        "the question names nothing: vectors and words lead",
    ]


def test_a_name_in_no_passage_leads_nowhere_unless_it_has_edges() -> None:
    """As after a passage was deleted, whose entities stay."""
    names = ["Ada", "sea", "Gone", "Linked"]
    edges = [{"src": src, "dst": dst} for src, dst in ((0, 5), (1, 5), (3, 6), (8, 6))]
    rows = [{"text": text} for text in TEXTS]
    index = hf.Index.build(passages=rows, vectors=np.eye(5) + 0.1, entities=names, graph=edges)
    asked = [["Gone"], ["Gone", "Ada"], ["Linked", "Ada"]]
    words = hf.lexical.BM25.build(TEXTS)
    ask: dict[str, Any] = {"vectors": np.ones((3, 5)), "entities": asked, "trace": True}
    found = GuidedWalk(index, lexical=words).search(["What of the river, gone?"] * 3, **ask)
    assert found.direct.tolist() == [1.0, 2 / 14, 1 / 13]
    assert [trace["direct"]["reason"] for trace in found.traces] == [
        "no passage has Gone, and no edge leads on from it: vectors and words lead",
        "the rarest name, Ada, is in 2 passages: the walk leads",
        "the rarest name, Linked, is in 0 passages: the walk leads",
    ]
    assert found.traces[0]["hits"][0]["passage"] == 4
    plain = HybridRRF(index, lexical=words).search(["What of the river, gone?"] * 3, **ask)
    assert [trace["direct"] for trace in plain.traces] == [trace["direct"] for trace in found.traces]


def test_the_likeliest_of_several_entities_of_a_name_decides() -> None:
    """A ship in one passage, called as a town in 19 is, does not make the question one about a rare name."""
    texts = [*(f"Springfield, day {day}." for day in range(19)), "A ship."]
    edges = [{"src": at, "dst": 20} for at in range(19)] + [{"src": 19, "dst": 21}]
    rows, names = [{"text": text} for text in texts], ["Springfield", "SS Springfield"]
    vectors = np.eye(20) + 0.5
    towns = hf.Index.build(
        passages=rows, vectors=vectors, entities=names, aliases={1: ["Springfield"]}, graph=edges, metric="cosine"
    )
    recipe = GuidedWalk(towns, matcher=hf.extract.EntityLinker(towns))
    found = recipe.search(["Where is Springfield?", "Where is SS Springfield?"], vectors=vectors[:2], trace=True)
    assert [len(trace["seeds"]) for trace in found.traces] == [2, 1]
    assert found.direct.tolist() == [19 / 31, 1 / 13]
    assert recipe.search(vectors=vectors[:1], entities=[[0, 1]]).direct.tolist() == [1 / 13], "both are given"


def test_a_word_counts_as_a_name_where_the_question_writes_it_so() -> None:
    from_words = hf.Index.build(passages=[{"text": text} for text in TEXTS], vectors=np.eye(5), reader="words")
    recipe = GuidedWalk(from_words, matcher=hf.extract.QuestionMatcher(from_words))
    asked = ["what of babbage", "what of Babbage", "WHAT OF BABBAGE"]
    found = recipe.search(asked, vectors=np.ones((3, 5)), trace=True)
    assert found.direct.tolist() == [8 / 20, 2 / 14, 8 / 20]
    assert [trace["direct"]["reason"] for trace in found.traces] == [
        "the rarest word, babbage, is in 2 passages: the walk counts with vectors and words",
        "the rarest name, babbage, is in 2 passages: the walk leads",
        "the rarest word, babbage, is in 2 passages: the walk counts with vectors and words",
    ]


@pytest.mark.parametrize("has_vectors", [False, True])
def test_words_weigh_the_lists_beside_a_plain_walk(has_vectors: bool) -> None:
    """With words alone, BM25's order stays where the question's rarest word is frequent."""
    texts = [*TEXTS, *(f"notes of day {day}" for day in range(60))]
    vectors = {"vectors": np.eye(65)} if has_vectors else {}
    from_words = hf.Index.build(passages=[{"text": text} for text in texts], reader="words", **vectors)
    matcher, words = hf.extract.QuestionMatcher(from_words), hf.lexical.BM25.build(texts)
    asked = ["what of notes", "what of Babbage", "babbage"]
    given = {"vectors": np.ones((3, 65))} if has_vectors else {}
    found = HybridRRF(from_words, matcher=matcher, lexical=words).search(asked, **given, k=5, trace=True)
    expected = [248 / 260, 2 / 14, 8 / 20]
    assert [trace["direct"]["weight"] for trace in found.traces] == pytest.approx(expected)
    for w, trace in zip(expected, found.traces, strict=True):
        weights = {"lexical": 0.2 + 0.6 * w, "dense": 0.4 + 0.6 * w} if has_vectors else {"lexical": 0.75 + 0.25 * w}
        for hit in trace["hits"]:
            own = {leg: (weights | {"graph": 1 - w})[leg] / (5 + rank) for leg, rank in hit["ranks"].items()}
            assert hit["contributions"] == pytest.approx(own)
    if has_vectors:
        phase = PhaseGraph(from_words, matcher=matcher).search(asked, **given, trace=True)
        assert [trace["direct"] for trace in phase.traces] == [trace["direct"] for trace in found.traces]
    else:
        assert found.hits.ids[0].tolist() == words.search(asked, 5).ids[0].tolist()


def test_a_question_without_names_is_ranked_by_vectors_and_words(index: hf.Index) -> None:
    words = hf.lexical.BM25.build(TEXTS)
    found = GuidedWalk(index, lexical=words).search(["the sea"], vectors=[np.eye(5)[3]], entities=[[]], k=5)
    assert found.hits.ids[0, 0] == 3


def test_given_weights_are_those_of_all_questions(index: hf.Index) -> None:
    ask: dict[str, Any] = {"vectors": np.ones((2, 5), np.float32), "entities": [["Ada"], []], "trace": True}
    found = GuidedWalk(index, dense_weight=0.5).search(**ask)
    assert found.direct.tolist() == [0.0, 0.0]
    for trace in found.traces:
        assert "direct" not in trace
        for hit in trace["hits"]:
            expected = {leg: {"guided": 1.0, "dense": 0.5}[leg] / (10 + rank) for leg, rank in hit["ranks"].items()}
            assert hit["contributions"] == pytest.approx(expected)


def test_a_dense_hit_without_the_words_of_the_question_counts_little() -> None:
    """Of two passages that the walk does not reach, the one that has the question's word is first."""
    texts = [*TEXTS, "A flood came.", "A flood of letters."]
    vectors = np.eye(7, dtype=np.float32) + 0.01
    index = made(texts, [*MENTIONS, (5, 2)], vectors)
    asked = np.zeros((1, 7), np.float32)
    asked[0, [4, 6]] = 1.0, 0.99
    words = hf.lexical.BM25.build(texts)
    found = GuidedWalk(index, lexical=words).search(
        ["Who met Ada about letters"], vectors=asked, entities=[["Ada"]], k=7
    )
    order = found.hits.ids[0].tolist()
    assert found.lists["dense"].ids[0, :2].tolist() == [4, 6]
    assert order.index(6) < order.index(4)


@given(st.integers(0, 50), st.integers(1, 24))
def test_fewer_hits_are_the_first_of_more(seed: int, k: int) -> None:
    recipe, ask = GuidedWalk(random_world(seed % 7).index()), random_questions(seed)
    assert_hits_equal(recipe.search(**ask, k=k).hits, recipe.search(**ask, k=24).hits.head(k))


@given(st.integers(0, 30))
def test_the_best_direct_hit_is_among_the_first_five(seed: int) -> None:
    found = GuidedWalk(random_world(seed % 5).index()).search(**random_questions(seed), k=24, trace=True)
    for b, trace in enumerate(found.traces):
        ids, scores = found.hits.ids[b, : found.hits.counts[b]], found.hits.scores[b, : found.hits.counts[b]]
        assert found.lists["dense"].ids[b, 0] in ids[:5]
        assert (np.diff(scores) <= 0).all()
        assert [hit["passage"] for hit in trace["hits"] if hit.get("kept")] in ([], [int(ids[4])])


class Extreme:
    """A lexical leg whose scores differ so much that one hit counts nothing."""

    def search(self, questions: Any, k: int, /) -> hf.Hits:
        return hf.Hits([[4, 3]] * len(questions), [[1e-30, -3e38]] * len(questions))


def test_a_lexical_hit_that_counts_nothing_is_left_out(index: hf.Index) -> None:
    recipe = GuidedWalk(index, lexical=Extreme(), dense_k=1)
    found = recipe.search(["Ada and notes?"], vectors=np.eye(5)[:1], entities=[["Ada"]], k=5)
    assert found.lists["lexical"].row(0) == [(4, pytest.approx(1e-30)), (3, pytest.approx(-3e38))]
    assert set(found.hits.ids[0, : found.hits.counts[0]].tolist()) == {0, 1, 2, 4}


class Unsure:
    """An encoder of a few words, which refuses a text without any of them."""

    WORDS = ("ada", "notes", "engine", "sea", "built")

    def encode_queries(self, texts: Any, /) -> Any:
        rows = [[float(word in text.lower()) for word in self.WORDS] for text in texts]
        if not all(map(any, rows)):
            raise ValueError("no vector")
        return np.array(rows, np.float32)


def test_the_words_beside_its_names_steer_a_question(index: hf.Index) -> None:
    recipe = GuidedWalk(index, encoder=Unsure())
    asked = ["What did Ada write, notes?", "Ada, who?", "Ada?"]
    found = recipe.search(asked, entities=[["Ada"]] * 3, trace=True)
    own = GuidedWalk(index).search(vectors=Unsure().encode_queries(asked), entities=[["Ada"]] * 3, trace=True)
    steered = [[hit["weight"] for hit in trace["guided"]] for trace in found.traces]
    unsteered = [[hit["weight"] for hit in trace["guided"]] for trace in own.traces]
    assert steered[0] != unsteered[0], "notes count more than beside the name"
    assert steered[1:] == unsteered[1:], "the encoder has no vector of the rest"


@pytest.mark.filterwarnings("error")
def test_vectors_that_the_walk_refuses_do_not_warn_where_they_steer(index: hf.Index) -> None:
    with refused(InputError, "finite", "vectors[0]"):
        GuidedWalk(index, encoder=Unsure()).search(
            ["What did Ada write, notes?"], vectors=np.full((1, 5), 1e200), entities=[["Ada"]]
        )


def test_an_encoder_without_a_dimension_steers_if_it_has_that_of_the_passages(index: hf.Index) -> None:
    """It has no vector for the text that would tell its dimension, and is not asked for those of questions."""

    class Shorter(Unsure):
        WORDS = Unsure.WORDS[:2]

    asked, vectors = ["What did Ada write, notes?", "Ada?"], Unsure().encode_queries(["ada engine", "ada"])
    ask: dict[str, Any] = {"vectors": vectors, "entities": [["Ada"]] * 2, "trace": True}
    weights = {}
    for name, encoder in (("none", None), ("same", Unsure()), ("shorter", Shorter())):
        found = GuidedWalk(index, encoder=encoder).search(asked, **ask)
        weights[name] = [hit["weight"] for hit in found.traces[0]["guided"]]
    assert weights["shorter"] == weights["none"] != weights["same"]
