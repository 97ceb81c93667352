"""Test what all recipes have in common: results, the default, filters, encoders, pickles, frozen configs."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, fields
from inspect import signature
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse.errors import InputError
from hopfuse.recipes import GuidedWalk, GuidedWalkConfig, HybridRRF, HybridRRFConfig, PhaseGraph, PhaseGraphConfig
from numpy.typing import NDArray
from recipes.policy_world import PolicyWorld
from recipes.worlds import DIM, Encoder, Words, lists_of, random_questions, random_world
from refusals import check_error, refused

WORLD = random_world(4)
ASK = random_questions(5)
QUESTIONS = [f"what is text {b}?" for b in range(5)]
RECIPES = [GuidedWalk, PhaseGraph, HybridRRF]


class Named:
    """An encoder by sentence-transformers' names."""

    def __init__(self, name: str, dim: int = DIM) -> None:
        self.name, self.dim, self.normalize = name, dim, False

    def encode_query(self, texts: Sequence[str], **_: Any) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dim), np.float32)

    encode_document = encode_query


@pytest.mark.parametrize("make", hf.recipes.RECIPES.values())
def test_only_an_index_is_taken(make: Any) -> None:
    with refused(InputError, "type", "index", given="str"):
        make("my-index")


@pytest.mark.parametrize(
    ("name", "ranks", "collaborators", "words", "by_cosine", "answers"),
    [
        ("guided-walk", "passages", {"encoder", "matcher", "lexical"}, "stored", True, False),
        ("phase-graph", "passages", {"encoder", "matcher", "lexical"}, "none", False, False),
        ("hybrid-rrf", "passages", {"encoder", "matcher", "lexical"}, "any", False, False),
        ("plain-hybrid", "passages", {"encoder", "matcher", "lexical"}, "any", False, False),
        ("policy-rag", "passages", {"encoder", "matcher", "fact_vectors", "llm"}, "none", True, True),
        ("triple-hybrid", "entities", {"encoder", "lexical"}, "none", True, False),
    ],
)
def test_a_class_says_what_its_recipe_is_like(
    name: str, ranks: str, collaborators: set[str], words: str, by_cosine: bool, answers: bool
) -> None:
    kind: Any = hf.recipes.RECIPES[name]
    assert (kind.name, kind.ranks, kind.by_cosine, kind.answers) == (name, ranks, by_cosine, answers)
    takes = set(signature(kind).parameters) - {"index", "config", "threads", "options"}
    assert set(kind.collaborators) == collaborators == takes
    assert kind.words(None) == kind.words(kind.Config()) == words
    assert hasattr(kind, "answer") == answers
    index = PolicyWorld(3).index
    by_passage = ranks == "passages"
    assert kind.space(index) is (index.corpus if by_passage else index.entity_corpus)
    assert list(kind.hit_ids(index)) == list(index.passage_ids if by_passage else index.entity_names)


def test_mode_lexical_of_triple_hybrid_needs_a_leg() -> None:
    assert hf.recipes.TripleHybrid.words(hf.recipes.TripleHybridConfig(mode="lexical")) == "any"


@pytest.mark.parametrize("make", RECIPES)
def test_a_result_is_a_list_of_hits_for_each_question(make: Any) -> None:
    index = WORLD.index()
    found = make(index).search(**ASK, k=3)
    assert isinstance(found, hf.recipes.SearchResult)
    assert len(found) == 5
    for b, row in enumerate(found):
        assert [(hit.row, hit.score) for hit in row] == found.hits.row(b)
        assert [hit.id for hit in row] == [index.passage_ids[hit.row] for hit in row]
        assert [(hit.title, hit.text) for hit in row] == [(f"Title {hit.row}", f"text {hit.row}") for hit in row]
    assert found[-1] == found[4]
    with pytest.raises(IndexError, match="question 5 is out of range; there are 5"):
        found[5]


def test_from_texts_to_passages() -> None:
    texts = ["Ada wrote notes.", "Babbage built the Engine."]

    class Letters(Named):
        def encode_query(self, texts: Sequence[str], **_: Any) -> NDArray[np.float32]:
            return np.array([[text.count(letter) + 1 for letter in "abcdef"] for text in texts], np.float32)

        encode_document = encode_query

    index = hf.Index.from_texts(texts, encoder=Letters("letters", 6))
    recipe = HybridRRF(index, encoder=Letters("letters", 6))
    (found,) = recipe.search(["bbb"], k=5)
    assert [hit.text for hit in found] == texts[::-1]


@pytest.mark.parametrize("make", RECIPES)
@pytest.mark.parametrize("scope", ["isolated", "results"])
def test_every_list_has_allowed_passages_alone(make: Any, scope: Any) -> None:
    options = {"exact_bonus": 0.5} if make is HybridRRF else {}
    recipe = make(WORLD.index(), lexical=Words(), **options)
    questions = [f"{q} title {b}, title 9, title 20" for b, q in enumerate(QUESTIONS)]
    allow = [[0, 1, 20], [9, 4, 5], list(range(12)), [], [7]]
    found = recipe.search(questions, **ASK, k=24, allow=allow, allow_scope=scope, trace=True)
    for hits in lists_of(found).values():
        for b, rows in enumerate(allow):
            assert {passage for passage, _ in hits.row(b)} <= set(rows)
    assert [trace["allowed"] for trace in found.traces] == list(map(len, allow))
    if make is HybridRRF:
        assert [row for row, _ in found.lists["exact"].row(0)] == [0, 20]
    everything = recipe.search(questions, **ASK, k=24)
    whole = recipe.search(questions, **ASK, k=24, allow=np.ones(24, bool), allow_scope="results")
    for name, hits in lists_of(everything).items():
        assert_hits_equal(lists_of(whole)[name], hits)


def test_hybrid_answers_in_isolation_are_those_of_an_index_of_the_passages_alone() -> None:
    mask = np.arange(24) % 3 == 1
    alone, passages, _ = WORLD.alone(mask)
    encoder = Encoder(WORLD)
    found = HybridRRF(WORLD.index(), encoder=encoder, entity_threshold=-1).search(**ASK, k=6, allow=mask)
    expected = HybridRRF(alone.index(), encoder=encoder, entity_threshold=-1).search(**ASK, k=6)
    for name, hits in lists_of(found).items():
        own = lists_of(expected)[name]
        for b in range(5):
            assert hits.row(b) == [(int(passages[row]), score) for row, score in own.row(b)]


def test_passages_are_allowed_by_their_own_ids() -> None:
    index = hf.Index.build(passages=[{"id": name, "text": name} for name in "abc"], vectors=np.eye(3), metric="cosine")
    recipe = HybridRRF(index)
    for allow in (["b", "c"], [["b", "c"]], np.array(["c", "b"]), [False, True, True]):
        found = recipe.search(vectors=np.ones((1, 3)), allow=allow)
        assert [hit.id for hit in found[0]] == ["b", "c"]
    with refused(InputError, "unknown", "allow"):
        recipe.search(vectors=np.ones((1, 3)), allow=["d"])
    for given, code in (("b", "type"), ([1], "unknown")):
        with refused(InputError, code, "allow"):
            recipe.search(vectors=np.ones((1, 3)), allow=given)


def test_integers_are_ids_of_passages_and_not_rows(tmp_path: Path) -> None:
    rows = [{"id": number, "text": str(number)} for number in (2, 0, 7)]
    recipe = HybridRRF(hf.Index.build(passages=rows, vectors=np.eye(3), metric="cosine"))
    for allow in ([2, 7], np.array([7, 2]), [[2, 7]], (np.int32(2), 7)):
        assert [hit.id for hit in recipe.search(vectors=np.ones((1, 3)), allow=allow)[0]] == [2, 7]
    with refused(InputError, "unknown", "allow[0]"):
        recipe.search(vectors=np.ones((1, 3)), allow=[[1]])
    hf.Index.build(passages=[{"text": one} for one in "abc"], vectors=np.eye(3), metric="cosine").save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        follower = live.follow(HybridRRF)
        with live.change() as change:
            change.delete_passages([0])
        live.refresh()
        assert [hit.id for hit in follower.search(vectors=np.ones((1, 3)), allow=[2])[0]] == [2]  # it is row 1 now
        with refused(InputError, "unknown", "allow"):
            follower.search(vectors=np.ones((1, 3)), allow=np.array([0]))


@pytest.mark.parametrize("make", RECIPES)
def test_another_encoder_than_the_indexs_is_refused(make: Any) -> None:
    graph = hf.Graph.from_edges([0, 1], [2, 2])
    index = hf.Index.build(
        passages=[{"text": "a"}, {"text": "b"}], vectors=np.ones((2, DIM)), graph=graph, encoder=Named("ours")
    )
    assert make(index, encoder=Named("ours")).search(["?"], entities=[[0]]).hits.counts.tolist() == [2]
    for other in (Named("theirs"), Named("ours", 3)):
        with refused(InputError, "conflict", "encoder"):
            make(index, encoder=other)


@pytest.mark.parametrize("make", RECIPES)
def test_recipes_are_pickled_by_what_they_were_made_of(make: Any, tmp_path: Path) -> None:
    WORLD.index().save(tmp_path)
    recipe = make(hf.Index.open(tmp_path), encoder=Encoder(WORLD), lexical=Words(), graph_k=7, threads=1)
    expected = recipe.search(QUESTIONS, **ASK)
    stored = pickle.dumps(recipe)
    assert len(stored) < 20_000
    again = pickle.loads(stored)
    assert again.config == recipe.config
    assert again.threads == 1
    for name, hits in lists_of(again.search(QUESTIONS, **ASK)).items():
        assert_hits_equal(hits, lists_of(expected)[name])


@pytest.mark.parametrize(
    ("make", "config"), [(GuidedWalk, GuidedWalkConfig), (PhaseGraph, PhaseGraphConfig), (HybridRRF, HybridRRFConfig)]
)
def test_a_config_is_frozen_and_given_whole_or_by_field(make: Any, config: Any) -> None:
    index = WORLD.index()
    recipe = make(index, config(graph_k=7), damping=0.25)
    assert recipe.config == config(graph_k=7, damping=0.25)
    assert recipe.Config is config
    assert all(field.metadata["doc"] for field in fields(config))
    with pytest.raises(FrozenInstanceError):
        recipe.config.graph_k = 5
    for name in ("config", "index", "encoder", "threads"):
        with pytest.raises(AttributeError, match=f"{name} of a {make.__name__} cannot be changed"):
            setattr(recipe, name, None)
    with refused(InputError, "unknown", "graph_kk"):
        make(index, graph_kk=7)
    with refused(InputError, "type", "config", given="dict"):
        make(index, {"graph_k": 7})
    with refused(InputError, "range", "threads", given=0):
        make(index, threads=0)


def test_recipes_are_known_by_name() -> None:
    assert [recipe.name for recipe in (PhaseGraph, HybridRRF)] == ["phase-graph", "hybrid-rrf"]
    for name in ("phase-graph", "hybrid-rrf"):
        assert hf.recipes.RECIPES[name].name == name
    index = hf.Index.build(passages=[{"text": "a"}])
    check_error(PhaseGraph.missing(index), InputError, "missing", "index", recipe="PhaseGraph")
    assert PhaseGraph.missing(WORLD.index()) is HybridRRF.missing(index) is None
    assert HybridRRF(index, lexical=Words()).needs == hf.recipes.Needs(texts=True, words=True)
    assert PhaseGraph(WORLD.index()).needs == hf.recipes.Needs(vectors=True, entities=True)
