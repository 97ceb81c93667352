"""PhaseGraph where questions may see some passages: over a graph of those alone, or over the shared one."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal, assert_rows_equal
from hopfuse import reference
from hopfuse.errors import InputError
from hopfuse.recipes import AllowScope
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from recipes.worlds import (
    DIM,
    Encoder,
    assert_same_ranking,
    fuse_by_hand,
    lists_of,
    random_questions,
    random_world,
    walk_by_hand,
    weights_by_hand,
)
from refusals import refused

SCOPES: tuple[AllowScope, ...] = ("isolated", "results")
OPTIONS: list[dict[str, Any]] = [
    {"dense_k": 9, "graph_k": 6},
    {"passage_seeds": 0.3, "consensus": 0.5, "dense_k": 7},
    {"method": "rrf", "edge_weights": {"synonym": 0.0, "relation": 0.5}},
    {"ties": "mean"},
    {"method": "linear", "calibration": "min_max", "passage_seeds": 0.1},
]


def mapped(hits: hf.Hits, ids: NDArray[np.int64]) -> hf.Hits:
    """The same hits by other numbers, in the same order."""
    return hf.Hits(np.where(hits.ids >= 0, ids[hits.ids], -1), hits.scores, hits.counts)


def assert_same_answers(found: Any, alone: Any, passages: NDArray[np.int64]) -> None:
    for pool in ("hits", "dense", "graph"):
        assert_rows_equal(lists_of(found)[pool], mapped(lists_of(alone)[pool], passages))
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
    assert_same_answers(recipe.search(**ask, k=6, allow=mask), expected, passages)
    assert_same_answers(recipe.search(**ask, k=6, allow=passages.tolist()), expected, passages)


@given(seed=st.integers(0, 2**16), options=st.sampled_from(OPTIONS))
def test_hidden_passages_never_change_a_score(seed: int, options: dict[str, Any]) -> None:
    world, mask = random_world(seed), np.arange(24) % 3 == seed % 3
    ask, encoder = random_questions(seed), Encoder(world)
    answers = []
    for other in (world, world.with_others_changed(mask, seed + 1), world.with_others_changed(mask, seed + 2)):
        recipe = hf.recipes.PhaseGraph(other.index(), encoder=encoder, entity_threshold=-1, **options)
        answers.append(recipe.search(**ask, k=6, allow=mask))
    for answer in answers[1:]:
        for pool in ("hits", "dense", "graph"):
            assert_hits_equal(lists_of(answer)[pool], lists_of(answers[0])[pool])


@pytest.mark.parametrize("scope", SCOPES)
def test_a_batch_of_several_owners_is_each_question_alone(scope: AllowScope) -> None:
    world, ask = random_world(5), random_questions(6, batch=6)
    rng = np.random.default_rng(7)
    masks = rng.random((6, 24)) < 0.4
    masks[4], masks[5] = masks[1], False
    recipe = hf.recipes.PhaseGraph(world.index(), passage_seeds=0.2, consensus=0.1)
    rows = [np.flatnonzero(mask).tolist() for mask in masks]
    ids = [[recipe.index.passage_ids[row] for row in allowed] for allowed in rows]
    found = recipe.search(**ask, allow=masks, allow_scope=scope, trace=True)
    for same in (rows, list(masks), ids):
        assert_hits_equal(recipe.search(**ask, allow=same, allow_scope=scope).hits, found.hits)
    for b, mask in enumerate(masks):
        one = {name: values[b : b + 1] for name, values in ask.items()}
        alone = recipe.search(**one, allow=mask, allow_scope=scope)
        for pool in ("hits", "dense", "graph"):
            whole, row = lists_of(found)[pool], lists_of(alone)[pool]
            for name, array in vars(row).items():
                own = getattr(whole, name)[b : b + 1]
                assert_bitwise(own[:, : array.shape[1]] if own.ndim == 2 else own, array, f"{name} of {pool}")
                assert own.ndim == 1 or (whole.ids[b, array.shape[1] :] == -1).all()
        assert set(found.hits.ids[b, : found.hits.counts[b]].tolist()) <= set(rows[b])
    assert found.hits.counts[5] == 0
    assert [trace["allowed"] for trace in found.traces] == masks.sum(axis=1).tolist()  # type: ignore[union-attr]


def test_both_graphs_are_their_compositions_over_the_oracle() -> None:
    world, ask = random_world(8), random_questions(9, batch=6)
    index = world.index()
    masks = np.random.default_rng(10).random((6, 24)) < 0.5
    recipe = hf.recipes.PhaseGraph(index, dense_k=8, graph_k=7, dense_fallback=False)
    for scope in SCOPES:
        found = recipe.search(**ask, k=15, allow=masks, allow_scope=scope)
        nodes = None if scope == "results" else [world.seen(mask) for mask in masks]
        assert_same_ranking(found.lists["graph"], walk_by_hand(index, found, masks, 7, nodes))
        assert_same_ranking(found.lists["dense"], reference.dense_topk(ask["vectors"], index.corpus, 8, allow=masks))
        lists = [found.lists["dense"], found.lists["graph"]]
        weights = weights_by_hand(found, "dense", "graph")
        expected = fuse_by_hand(lists, weights, method="boltzmann", temperature=0.1, k=15)
        assert_same_ranking(found.hits, expected, tie=1e-9)  # the last scores are tiny


def test_no_passage_and_no_question() -> None:
    recipe = hf.recipes.PhaseGraph(random_world(5).index())
    ask = random_questions(2, batch=3)
    for nothing in ([], np.zeros(24, bool), [[], [], []]):
        for scope in SCOPES:
            found = recipe.search(**ask, allow=nothing, allow_scope=scope)
            assert found.hits.counts.tolist() == [0, 0, 0]
            assert found.lists["graph"].counts.tolist() == [0, 0, 0]
    for nobody in (np.zeros((0, 24), bool), [1, 2]):
        for scope in SCOPES:
            none = recipe.search(vectors=np.zeros((0, DIM)), entities=[], allow=nobody, allow_scope=scope)
            assert none.hits.shape == (0, 10)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"allow": [24]}, ("unknown", "allow")),
        ({"allow": [-1]}, ("unknown", "allow")),
        ({"allow": np.array([2**63], np.uint64)}, ("unknown", "allow")),
        ({"allow": np.ones(23, bool)}, ("shape", "allow")),
        ({"allow": np.ones((2, 24), bool)}, ("shape", "allow")),
        ({"allow": np.array([[1], [2], [3]])}, ("shape", "allow")),
        ({"allow": [[1], [2]]}, ("length", "allow")),
        ({"allow": [[1], [2], [24]]}, ("unknown", "allow[2]")),
        ({"allow": [0.5]}, ("shape", "allow")),
        ({"allow": "0"}, ("type", "allow")),
        ({"allow": ["a"]}, ("unknown", "allow")),
        ({"allow": np.ones((1, 3, 24), bool)}, ("shape", "allow")),
        ({"allow": [np.ones((3, 24), bool)] * 3}, ("shape", "allow[0]")),
        ({"allow_scope": "shared"}, ("choice", "allow_scope")),
    ],
    ids=lambda value: None,
)
def test_invalid_input_is_refused(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    recipe = hf.recipes.PhaseGraph(random_world(5).index())
    with refused(InputError, *refusal):
        recipe.search(**random_questions(2, batch=3), **options)
