"""PhaseGraph's methods, scales and edge weights: each is its own composition over the oracle."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse import fusion, reference
from hopfuse.errors import InputError
from recipes.worlds import (
    TYPES,
    assert_same_ranking,
    fuse_by_hand,
    random_questions,
    random_world,
    walk_by_hand,
    weights_by_hand,
)
from refusals import refused

WORLD, LEGS = random_world(3, passages=40, entities=25), ("dense", "graph")


@pytest.fixture(scope="module")
def index() -> hf.Index:
    return WORLD.index()


@pytest.fixture(scope="module")
def ask() -> dict[str, Any]:
    return random_questions(4, batch=8)


def defaults_of(recipe: hf.recipes.PhaseGraph, found: hf.recipes.PhaseGraphResult) -> dict[str, Any]:
    """What a fusion is given where a search says nothing: weights, and Boltzmann's temperature."""
    made: dict[str, Any] = {"temperature": 0.1} if recipe.config.method == "boltzmann" else {}
    if not recipe.config.fusion.weighted:
        return made
    alpha = recipe.config.alpha
    return {**made, "weights": weights_by_hand(found, *LEGS) if alpha is None else (alpha, 1 - alpha)}


@pytest.mark.parametrize("method", fusion.METHODS)
@pytest.mark.parametrize("consensus", [0.0, 0.5])
def test_every_method_is_its_composition_over_the_oracle(
    index: hf.Index, ask: dict[str, Any], method: str, consensus: float
) -> None:
    options: dict[str, Any] = {"consensus": consensus, "dense_k": 20, "graph_k": 9, "dense_fallback": False}
    recipe = hf.recipes.PhaseGraph(index, method=method, **options)
    found = recipe.search(**ask, k=10)
    everyone = np.ones((len(found.hits), WORLD.passages), bool)
    assert_same_ranking(found.lists["graph"], walk_by_hand(index, found, everyone, 9))
    assert_same_ranking(found.lists["dense"], reference.dense_topk(ask["vectors"], index.corpus, 20))
    how = {"method": method, "consensus": consensus, "k": 10, **defaults_of(recipe, found)}
    expected = fuse_by_hand([found.lists[leg] for leg in LEGS], **how)
    assert_same_ranking(found.hits, expected, tie=1e-6 if method == "gumbel" else 0.0)  # its last scores are tiny


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rrf"},
        {"method": fusion.RRF(rank_constant=5), "alpha": 0.4},
        {"calibration": "min_max", "temperature": 0.2},
        {"method": "tsallis", "temperature": 0.3, "ties": "mean"},
        {"method": fusion.Tsallis(q=(1.0, 1.5))},
        {"method": fusion.Boltzmann(wasserstein=2.0), "calibration": "min_max"},
        {"method": "linear", "calibration": fusion.Calibration("theoretical_min_max", lower=(-1.0, 0.0))},
        {"method": "comb_mnz", "calibration": "z_score", "alpha": 1.0},
        {"method": "max", "consensus": 1.5},
        {"method": fusion.Max(bias=[0.0, 0.25])},
        {"method": fusion.Custom(fusion.Linear().formula), "alpha": 0.25},
    ],
    ids=lambda options: str(options.get("method")) + "".join(options),
)
def test_options_are_those_of_fuse(index: hf.Index, ask: dict[str, Any], options: dict[str, Any]) -> None:
    recipe = hf.recipes.PhaseGraph(index, **options)
    found = recipe.search(**ask, k=12)
    rest = defaults_of(recipe, found) | {name: value for name, value in options.items() if name != "alpha"}
    assert_hits_equal(found.hits, hf.fuse([found.lists["dense"], found.lists["graph"]], k=12, **rest))


@pytest.mark.parametrize("weights", [{"synonym": 0.0}, {"synonym": 0.5, "next": 2}, {"context": 3.0}])
def test_edge_weights_are_the_walks(index: hf.Index, ask: dict[str, Any], weights: dict[str, float]) -> None:
    found = hf.recipes.PhaseGraph(index, edge_weights=weights, graph_k=15, dense_fallback=False).search(**ask)
    everyone = np.ones((len(found.hits), WORLD.passages), bool)
    eta = [weights.get(name, 1.0) for name in TYPES]
    assert_same_ranking(found.lists["graph"], walk_by_hand(index, found, everyone, 15, edge_type_weights=eta))
    plain = hf.recipes.PhaseGraph(index, graph_k=15, dense_fallback=False).search(**ask)
    assert_hits_equal(found.lists["dense"], plain.lists["dense"])
    assert (found.lists["graph"].scores != plain.lists["graph"].scores).any()


def test_a_weight_of_0_is_a_graph_without_those_edges(index: hf.Index, ask: dict[str, Any]) -> None:
    unlinked = random_world(3, passages=40, entities=25)
    unlinked.edges[:] = [edge for edge in unlinked.edges if edge[2] != "synonym"]
    found = hf.recipes.PhaseGraph(index, edge_weights={"synonym": 0}).search(**ask)
    assert_same_ranking(found.lists["graph"], hf.recipes.PhaseGraph(unlinked.index()).search(**ask).lists["graph"])


def test_weights_of_1_change_nothing(index: hf.Index, ask: dict[str, Any]) -> None:
    plain = hf.recipes.PhaseGraph(index).search(**ask)
    for same in ({}, dict.fromkeys(TYPES, 1.0)):
        assert_hits_equal(
            hf.recipes.PhaseGraph(index, edge_weights=same).search(**ask).lists["graph"], plain.lists["graph"]
        )


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"method": "rff"}, ("choice", "method")),
        ({"method": 3}, ("choice", "method")),
        ({"method": "rrf", "temperature": 0.5}, ("unknown", "temperature")),
        ({"method": fusion.Boltzmann(), "temperature": 0.5}, ("conflict", "temperature")),
        ({"method": "rrf", "ties": "mean"}, ("unused", "ties")),
        ({"method": "rrf", "calibration": "pit"}, ("unused", "calibration")),
        ({"method": "max", "alpha": 0.5}, ("unused", "alpha")),
        ({"method": "comb_min", "lexical_weight": 0.5}, ("unused", "lexical_weight")),
        ({"calibration": "z_score"}, ("choice", "calibration")),
        ({"calibration": "min_max", "ties": "mean"}, ("unused", "ties")),
        ({"edge_weights": {"synonyms": 1.0}}, ("unknown", "edge_weights")),
        ({"edge_weights": {"synonym": -1}}, ("range", "edge_weights.synonym")),
        ({"edge_weights": {"synonym": True}}, ("range", "edge_weights.synonym")),
        ({"edge_weights": [1.0]}, ("type", "edge_weights")),
    ],
    ids=repr,
)
def test_invalid_options_are_refused_at_once(
    index: hf.Index, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        hf.recipes.PhaseGraph(index, **options)


def test_scores_below_0_are_refused_where_the_method_cannot_read_them(index: hf.Index, ask: dict[str, Any]) -> None:
    recipe = hf.recipes.PhaseGraph(index, calibration="none")
    with refused(InputError, "range", "lists[0]"):
        recipe.search(**ask)
