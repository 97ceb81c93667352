"""What seeds weigh: rarity within bounds, how sure a mention is, and namesakes by their passages."""

from __future__ import annotations

from math import exp
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import EntityLinker, Match
from refusals import refused

#: The factor of an entity that has another's own name as an alias.
ALIAS = 0.05
#: What all but the likeliest of the entities of a name weigh together at least, as a part of the likeliest.
OTHERS = 0.15

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick (extra text)")

NAMES = ("Tbilisi", "Time", "Reading", "Reading (film)", "Georgia")
#: Tbilisi is in 40 passages, Time in one; Reading in the first, the film in the last.
EDGES = [(p, 0) for p in range(40)] + [(40, 1), (0, 2), (41, 3)] + [(p, 4) for p in range(5)]
VECTORS = np.eye(4, dtype=np.float32)[[0] * 20 + [1] * 20 + [2, 3]]


@pytest.fixture(scope="module")
def index() -> hf.Index:
    return hf.Index.build(
        passages=[{"text": "a plain time" if p in (7, 8) else "-"} for p in range(42)],
        vectors=VECTORS,
        entities=list(NAMES),
        aliases={"Reading (film)": ["Reading"], "Georgia": ["Reading"]},
        graph=[{"src": p, "dst": 42 + e} for p, e in EDGES],
    )


def weights(found: Any, row: int = 0) -> dict[int, float]:
    pairs = zip(found.seeds.nodes[row].tolist(), found.seeds.weights[row].tolist(), strict=True)
    return {node - 42: weight for node, weight in pairs if node >= 0}


def test_no_seed_weighs_less_than_a_thirtieth(index: hf.Index) -> None:
    found = hf.recipes.PhaseGraph(index).search(vectors=np.ones((1, 4)), entities=[["Tbilisi", "Time", "Georgia"]])
    assert weights(found) == {0: 1 / 30, 1: 1.0, 4: 1 / 5}


@pytest.mark.parametrize(("confidence", "weight"), [(1.0, 1.0), (0.5, 0.5), (0.49, 0.49 / 30), (0.01, 0.01 / 30)])
def test_a_mention_in_doubt_weighs_no_more_than_a_sure_one(index: hf.Index, confidence: float, weight: float) -> None:
    matches = [Match(0, "Tbilisi", 0, 7, "exact"), Match(1, "time", 9, 13, "exact", confidence)]
    found = hf.recipes.PhaseGraph(index).search(vectors=np.ones((1, 4)), entities=[matches])
    assert weights(found) == {0: 1 / 30, 1: pytest.approx(weight, rel=1e-15)}
    alone = hf.recipes.PhaseGraph(index).search(vectors=np.ones((1, 4)), entities=[matches[1:]])
    assert weights(alone) == {1: pytest.approx(confidence, rel=1e-15)}


def test_a_match_without_a_confidence_that_can_be_is_refused(index: hf.Index) -> None:
    for confidence in (0.0, -1.0, 1.5, float("nan")):
        with refused(InputError, "range", "confidence"):
            hf.recipes.PhaseGraph(index).search(
                vectors=np.ones((1, 4)), entities=[[Match(0, "x", 0, 1, "exact", confidence)]]
            )


def test_entities_of_one_name_weigh_by_the_likeness_of_their_passages(index: hf.Index) -> None:
    recipe = hf.recipes.PhaseGraph(index, matcher=EntityLinker(index))
    vectors = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0.6, 0, 0.48, 0.64]], np.float32)
    found = recipe.search(["Who was in Reading?"] * 3, vectors=vectors)
    assert weights(found, 0) == pytest.approx({2: 1.0, 3: OTHERS / 2, 4: OTHERS / 2}, rel=1e-6)
    assert weights(found, 1) == pytest.approx({2: 0.01 / ALIAS, 3: 1.0, 4: OTHERS / 2}, rel=1e-6)
    near = exp((0.6 - 0.64) / 0.05)
    assert weights(found, 2) == pytest.approx({2: 1.0, 3: ALIAS / near, 4: OTHERS / 2}, rel=1e-5)


def test_the_likeliest_of_a_name_weighs_as_it_would_alone_however_rare_the_others_are() -> None:
    rows = [{"text": "-"}] * 41
    graph = [{"src": p, "dst": 41} for p in range(40)] + [{"src": 40, "dst": 42}, {"src": 40, "dst": 43}]
    index = hf.Index.build(
        passages=rows,
        vectors=np.eye(2, dtype=np.float32)[[0] * 40 + [1]],
        entities=["Cook (hub)", "Cook (rare)", "Cook (other)"],
        aliases={entity: ["Cook"] for entity in range(3)},
        graph=graph,
    )
    recipe = hf.recipes.PhaseGraph(index, matcher=EntityLinker(index))
    found = recipe.search(["Where is Cook?"] * 2, vectors=np.float32([[1, 0], [0.5, 0.5]]))
    seeds = found.seeds
    assert seeds.nodes[:, :3].tolist() == [[41, 42, 43]] * 2
    hub = 1 / 30
    assert seeds.weights[0, :3] == pytest.approx(np.array([1, OTHERS / 2, OTHERS / 2]) * hub, rel=1e-6)
    assert seeds.weights[1, :3] == pytest.approx(np.full(3, hub), rel=1e-6)


def test_namesakes_and_counts_are_those_of_the_allowed_passages(index: hf.Index) -> None:
    recipe = hf.recipes.PhaseGraph(index, matcher=EntityLinker(index))
    ask: dict[str, Any] = {"queries": ["reading or time"], "vectors": np.array([[0, 0, 0.5, 1]], np.float32)}
    assert weights(recipe.search(**ask))[3] == 1.0
    allowed = recipe.search(**ask, allow=[0, 1, 40])
    assert weights(allowed) == {1: 1.0, 2: 1.0, 4: pytest.approx(OTHERS)}
    doubted = recipe.search(**ask, allow=[0, 7, 8, 40])
    assert 1 not in weights(doubted)
    results = recipe.search(**ask, allow=[0, 1, 40], allow_scope="results")
    assert weights(results) == weights(recipe.search(**ask))


def test_every_recipe_takes_matches(index: hf.Index) -> None:
    ask: dict[str, Any] = {"vectors": np.ones((1, 4)), "entities": [[Match(4, "Georgia", 0, 7, "exact")]]}
    for recipe in (hf.recipes.PhaseGraph(index), hf.recipes.HybridRRF(index)):
        np.testing.assert_array_equal(
            recipe.search(**ask).hits.ids, recipe.search(**ask | {"entities": [["Georgia"]]}).hits.ids
        )
