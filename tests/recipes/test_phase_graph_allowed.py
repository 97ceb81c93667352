"""PhaseGraph where questions may see some passages: over a graph of those alone, or over the shared one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import reference
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from recipes.worlds import DIM, World, assert_same_ranking, random_questions, random_world, walk_by_hand

OPTIONS: list[dict[str, Any]] = [
    {"dense_k": 9, "graph_k": 6},
    {"passage_seeds": 0.3, "consensus": 0.5, "dense_k": 7},
    {"method": "rrf", "edge_weights": {"synonym": 0.0, "relation": 0.5}},
    {"ising": hf.recipes.Ising(blend=0.4, candidates=12), "ties": "mean"},
    {"method": "linear", "calibration": "min_max", "ising": 0.3, "passage_seeds": 0.1},
]


class Encoder:
    """Vectors of names: near one entity, by the name's letters."""

    def __init__(self, world: World) -> None:
        self.vectors = world.entity_vectors

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        return np.stack([self.vectors[sum(map(ord, text)) % len(self.vectors)] for text in texts])


def mapped(hits: hf.Hits, ids: NDArray[np.int64]) -> hf.Hits:
    """The same hits by other numbers, in the same order."""
    return hf.Hits(np.where(hits.ids >= 0, ids[hits.ids], -1), hits.scores, hits.counts)


def assert_same_answers(found: Any, alone: Any, passages: NDArray[np.int64]) -> None:
    for pool in ("hits", "dense", "graph"):
        assert_hits_equal(getattr(found, pool), mapped(getattr(alone, pool), passages))
    assert_bitwise(found.seeds.weights, alone.seeds.weights)


@given(seed=st.integers(0, 2**16), share=st.floats(0.1, 0.9), options=st.sampled_from(OPTIONS))
def test_an_isolated_answer_is_that_of_an_index_of_the_passages_alone(
    seed: int, share: float, options: dict[str, Any]
) -> None:
    world, mask = random_world(seed), np.random.default_rng(seed).random(24) < share
    mask[seed % 24] = True
    alone, passages, _ = world.alone(mask)
    ask, encoder = random_questions(seed), Encoder(world)
    recipe = hf.recipes.PhaseGraph(world.index(), encoder=encoder, entity_threshold=-1, **options)
    its_own = hf.recipes.PhaseGraph(alone.index(), encoder=encoder, entity_threshold=-1, **options)
    expected = its_own.search(**ask, k=6)
    assert_same_answers(recipe.search(**ask, k=6, allowed=mask), expected, passages)
    assert_same_answers(recipe.search(**ask, k=6, allowed=passages.tolist()), expected, passages)


@given(seed=st.integers(0, 2**16), options=st.sampled_from(OPTIONS))
def test_what_others_say_never_changes_a_score(seed: int, options: dict[str, Any]) -> None:
    world, mask = random_world(seed), np.arange(24) % 3 == seed % 3
    ask, encoder = random_questions(seed), Encoder(world)
    answers = []
    for other in (world, world.with_others_changed(mask, seed + 1), world.with_others_changed(mask, seed + 2)):
        recipe = hf.recipes.PhaseGraph(other.index(), encoder=encoder, entity_threshold=-1, **options)
        answers.append(recipe.search(**ask, k=6, allowed=mask))
    for answer in answers[1:]:
        for pool in ("hits", "dense", "graph"):
            assert_hits_equal(getattr(answer, pool), getattr(answers[0], pool))


@pytest.mark.parametrize("shared_graph", [False, True])
def test_a_batch_of_several_owners_is_each_question_alone(shared_graph: bool) -> None:
    world, ask = random_world(5), random_questions(6, batch=6)
    rng = np.random.default_rng(7)
    masks = rng.random((6, 24)) < 0.4
    masks[4], masks[5] = masks[1], False
    recipe = hf.recipes.PhaseGraph(world.index(), passage_seeds=0.2, consensus=0.1)
    rows = [np.flatnonzero(mask).tolist() for mask in masks]
    found = recipe.search(**ask, allowed=masks, shared_graph=shared_graph, explain=True)
    for same in (rows, list(masks)):
        assert_hits_equal(recipe.search(**ask, allowed=same, shared_graph=shared_graph).hits, found.hits)
    for b, mask in enumerate(masks):
        one = {name: values[b : b + 1] for name, values in ask.items()}
        alone = recipe.search(**one, allowed=mask, shared_graph=shared_graph)
        for pool in ("hits", "dense", "graph"):
            whole, row = getattr(found, pool), getattr(alone, pool)
            for name, array in vars(row).items():
                assert_bitwise(getattr(whole, name)[b : b + 1], array, f"{name} of {pool}")
        assert set(found.hits.ids[b, : found.hits.counts[b]].tolist()) <= set(rows[b])
    assert found.hits.counts[5] == 0
    assert [trace["allowed"] for trace in found.traces] == masks.sum(axis=1).tolist()  # type: ignore[union-attr]


def test_both_graphs_are_their_compositions_over_the_oracle() -> None:
    world, ask = random_world(8), random_questions(9, batch=6)
    index = world.index()
    masks = np.random.default_rng(10).random((6, 24)) < 0.5
    recipe = hf.recipes.PhaseGraph(index, dense_k=8, graph_k=7)
    for shared in (False, True):
        found = recipe.search(**ask, allowed=masks, shared_graph=shared)
        nodes = None if shared else [world.seen(mask) for mask in masks]
        assert_same_ranking(found.graph, walk_by_hand(index, found, masks, 7, nodes))
        assert_same_ranking(found.dense, reference.dense_topk(ask["vectors"], index.corpus, 8, allow=masks))
        expected = reference.fuse([found.dense, found.graph], method="boltzmann", weights=(0.7, 0.3), k=10)
        assert_same_ranking(found.hits, expected)


#: Passages 0 and 1 are ours, 2 and 3 theirs; the entity "Hub" is everybody's, "Secret" theirs alone.
OWNERS = World(
    np.eye(4, DIM, dtype=np.float32),
    ["Hub", "Ours", "Secret", "Hidden"],
    np.eye(4, DIM, dtype=np.float32),
    [
        (0, 4, "context", 1.0),
        (0, 5, "context", 1.0),
        (1, 5, "context", 1.0),
        (2, 4, "context", 1.0),
        (3, 4, "context", 1.0),
        (2, 6, "context", 1.0),
        (5, 6, "synonym", 1.0),
        (6, 7, "relation", 1.0),
    ],
    {1: ["Secret", "Mine"], 2: ["Mine"]},
)
ASK = {"vectors": np.ones((1, DIM), np.float32)}


def search(entities: list[Any], **options: Any) -> Any:
    recipe = hf.recipes.PhaseGraph(OWNERS.index(), encoder=Encoder(OWNERS), entity_threshold=-1)
    found = recipe.search(**ASK, entities=[entities], explain=True, **options)
    return found, found.traces[0]  # type: ignore[index]


def test_mass_stays_among_what_is_allowed() -> None:
    """Ours leads to Secret by a synonym and Hub to both of their passages: neither is walked over."""
    found, trace = search(["Hub"], allowed=[0, 1])
    assert found.graph.row(0) == pytest.approx(expected_walk(), abs=1e-6)
    assert [(seed["name"], seed["weight"], seed["passage_frequency"]) for seed in trace["seeds"]] == [("Hub", 1.0, 1)]
    shared, shared_trace = search(["Hub"], allowed=[0, 1], shared_graph=True)
    assert shared_trace["seeds"][0]["weight"] == pytest.approx(1 / 3)
    assert shared.graph.counts.tolist() == [2]
    assert shared.graph.row(0)[0][1] < found.graph.row(0)[0][1] / 2


def expected_walk() -> list[Any]:
    """Hub - 0 - Ours - 1, a path: the oracle over those four nodes."""
    path = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    x = reference.ppr(path, [{0: 1.0}], damping=0.5)[0]
    return [pytest.approx((0, x[1])), pytest.approx((1, x[3]))]


def test_entities_that_may_not_be_seen_are_left_out_and_listed() -> None:
    found, trace = search(["Hidden", 2, "Ours"], allowed=[0, 1])
    names = [(seed["name"], seed["match"]) for seed in trace["left_out"]]
    assert names == [("Hidden", "exact"), ("Secret", "given")]
    assert all(seed["weight"] == 0 and seed["passage_frequency"] == 0 for seed in trace["left_out"])
    assert found.seeds.nodes[0].tolist().count(-1) == 8 - len(trace["seeds"])
    found, trace = search([2, 3], allowed=[0, 1])
    assert trace["seeds"] == []
    assert found.graph.counts.tolist() == [0]
    assert found.hits.counts.tolist() == [2]


def test_a_name_finds_what_it_would_find_in_an_index_of_ones_own() -> None:
    """Secret is theirs by name and ours by alias; Mine is an alias of both; Hidden goes to the nearest of ours."""
    _, trace = search(["Secret"], allowed=[0, 1])
    assert [(seed["name"], seed["match"]) for seed in trace["seeds"]] == [("Ours", "alias")]
    assert [(seed["name"], seed["match"]) for seed in trace["left_out"]] == [("Secret", "exact")]
    _, trace = search(["Mine"], allowed=[0, 1])
    assert [seed["name"] for seed in trace["seeds"]] == ["Ours"]
    _, trace = search(["Hidden"], allowed=[0, 1])
    assert [seed["match"] for seed in trace["seeds"]] == ["nearest"]
    assert {seed["name"] for seed in trace["seeds"]} <= {"Hub", "Ours"}


class Words:
    """A lexical leg that cannot filter."""

    def search(self, questions: Sequence[str], k: int, /) -> hf.Hits:
        rng = np.random.default_rng(3)
        scores = rng.integers(1, 6, (len(questions), 24)).astype(np.float32)
        return hf.Hits(np.tile(np.arange(24), (len(questions), 1)), scores).head(k)


class FilteringWords(Words):
    """One that can."""

    def search(self, questions: Sequence[str], k: int, /, *, allow: Any = None) -> hf.Hits:
        found = super().search(questions, 24)
        rows = np.broadcast_to(allow, (len(questions), 24))
        kept = [[hit for hit in found.row(b) if rows[b][hit[0]]][:k] for b in range(len(questions))]
        return hf.Hits.from_lists(kept)


@pytest.mark.parametrize("each", [False, True])
def test_the_lexical_pool_is_of_allowed_passages(each: bool) -> None:
    index, ask, questions = random_world(5).index(), random_questions(6, batch=4), ["a", "b", "c", "d"]
    masks = np.random.default_rng(1).random((4, 24)) < 0.4
    allowed = masks if each else masks[0]
    answers = [
        hf.recipes.PhaseGraph(index, lexical=leg, lexical_k=5).search(questions, **ask, allowed=allowed)
        for leg in (Words(), FilteringWords())
    ]
    whole = Words().search(questions, 24)
    for b in range(4):
        expected = [hit for hit in whole.row(b) if np.atleast_2d(allowed)[b if each else 0][hit[0]]][:5]
        assert answers[0].lexical.row(b) == expected  # type: ignore[union-attr]
    for pool in ("lexical", "hits"):
        assert_hits_equal(getattr(answers[0], pool), getattr(answers[1], pool))


def test_bm25_filters_by_itself() -> None:
    pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra lexical)")
    index = random_world(5).index()
    bm25 = hf.lexical.BM25.build(list(index.titles), stopwords=None, stemmer=None)
    found = hf.recipes.PhaseGraph(index, lexical=bm25).search(["title 3"], **ASK, entities=[[]], allowed=[3, 4])
    assert found.lexical.row(0) == bm25.search(["title 3"], 5, allow=[3, 4]).row(0)  # type: ignore[union-attr]
    assert found.lexical.counts.tolist() == [2]  # type: ignore[union-attr]


def test_no_passage_and_no_question() -> None:
    recipe = hf.recipes.PhaseGraph(random_world(5).index(), ising=0.1)
    ask = random_questions(2, batch=3)
    for nothing in ([], np.zeros(24, bool), [[], [], []]):
        for shared in (False, True):
            found = recipe.search(**ask, allowed=nothing, shared_graph=shared)
            assert found.hits.counts.tolist() == [0, 0, 0]
            assert found.graph.counts.tolist() == [0, 0, 0]
    for nobody in (np.zeros((0, 24), bool), [1, 2]):
        none = recipe.search(vectors=np.zeros((0, DIM)), entities=[], allowed=nobody, shared_graph=True)
        assert none.hits.shape == (0, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allowed": [24]}, "allowed has id 24; ids are 0 .. 23"),
        ({"allowed": [-1]}, "allowed has id -1"),
        ({"allowed": np.ones(23, bool)}, r"allowed is a mask of shape \(23,\)"),
        ({"allowed": np.ones((2, 24), bool)}, "2 rows for 3 queries"),
        ({"allowed": [[1], [2]]}, "2 rows for 3 queries"),
        ({"allowed": [[1], [2], [24]]}, r"allowed\[2\] has id 24"),
        ({"allowed": [0.5]}, "allowed"),
        ({"allowed": "0"}, "allowed"),
        ({"allowed": ["a"]}, "allowed"),
        ({"allowed": np.ones((1, 3, 24), bool)}, "allowed"),
        ({"allowed": [np.ones((3, 24), bool)] * 3}, "allowed has rows of rows"),
        ({"shared_graph": 1}, "shared_graph is 1"),
    ],
    ids=lambda value: None,
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    recipe = hf.recipes.PhaseGraph(random_world(5).index())
    with pytest.raises(InputError, match=message):
        recipe.search(**random_questions(2, batch=3), **options)
