import json

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import FusedLegs, Qrels, Run, Sweep, fusion_trials, option_curves, sweep
from hopfuse.report import sweep_tables
from refusals import refused

RNG = np.random.default_rng(5)
ROWS = np.array([4, 0, 2])


def leg(k):
    ids = np.array([RNG.permutation(40)[:k] for _ in range(6)])
    return Run(hf.Hits(ids, RNG.random((6, k), np.float32)), [f"answer {b}" for b in range(6)])


LEGS = {"dense": leg(20), "graph": leg(10), "words": leg(15)}


def same(found, expected):
    for name in ("ids", "scores", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_options_are_those_of_fuse():
    lists = [run.take(ROWS).hits for run in LEGS.values()]
    fused = FusedLegs(LEGS, k=7)
    options = {"method": "boltzmann", "alpha": 0.5, "pool": 8, "pool graph": 3, "temperature": 0.6, "consensus": 0.1}
    expected = hf.fuse(
        lists, weights=(0.5, 0.25, 0.25), pool=[8, 3, 8], temperature=0.6, consensus=0.1, k=7, method="boltzmann"
    )
    same(fused(options, ROWS), expected)
    same(fused({"method": "rrf", "rank_constant": 10}, ROWS), hf.fuse(lists, method="rrf", rank_constant=10, k=7))


def test_a_leg_alone_keeps_its_order_and_its_answers():
    alone = FusedLegs(LEGS, k=4)({"leg": "graph"}, ROWS)
    same(alone.hits, LEGS["graph"].take(ROWS).hits.head(4))
    assert alone.answers == ["answer 4", "answer 0", "answer 2"]


def test_all_weight_on_one_leg_is_its_order():
    two = {name: LEGS[name] for name in ("dense", "graph")}
    found = FusedLegs(two, k=20)({"method": "linear", "alpha": 1.0, "calibration": "min_max", "pool graph": 0}, ROWS)
    alone = hf.fuse([two["dense"].take(ROWS).hits], method="linear", calibration="min_max", weights=[1.0], k=20)
    same(found.head(19), alone.head(19))
    np.testing.assert_array_equal(found.ids, two["dense"].take(ROWS).hits.ids)


def test_trials_have_the_options_that_their_method_has():
    grid = {"alpha": [0.3, 0.7], "temperature": ["auto", 1.0], "calibration": ["pit", "z_score"], "pool b": [5]}
    trials = fusion_trials(["boltzmann", "rrf", "linear", "max"], grid, ["a", "b"])
    assert trials[:2] == [{"leg": "a"}, {"leg": "b"}]
    of = {method: [t for t in trials if t.get("method") == method] for method in ("boltzmann", "rrf", "linear", "max")}
    assert {method: len(found) for method, found in of.items()} == {"boltzmann": 4, "rrf": 2, "linear": 4, "max": 2}
    assert of["boltzmann"][0] == {
        "method": "boltzmann", "alpha": 0.3, "temperature": "auto", "calibration": "pit", "pool b": 5
    }  # fmt: skip
    assert of["rrf"][1] == {"method": "rrf", "alpha": 0.7, "pool b": 5}
    assert "alpha" not in of["max"][0]
    legs = FusedLegs({"a": LEGS["dense"], "b": LEGS["graph"]})
    for trial in trials:
        assert len(legs(trial, ROWS)) == 3


def test_a_method_that_can_use_none_of_the_calibrations_is_left_out():
    trials = fusion_trials(["boltzmann", "linear", "rrf"], {"calibration": ["z_score"], "alpha": [0.5]}, ["a", "b"])
    assert trials[2:] == [
        {"method": "linear", "alpha": 0.5, "calibration": "z_score"},
        {"method": "rrf", "alpha": 0.5},
    ]
    assert fusion_trials(["boltzmann"], {"calibration": ["z_score", "pit"]}, ["a"])[1:] == [
        {"method": "boltzmann", "calibration": "pit"}
    ]


def largest(lists, weights, floor=0.0):
    best = {}
    for one, weight in zip(lists, weights, strict=True):
        for document, score in zip(one.ids.tolist(), one.scores.tolist(), strict=True):
            best[document] = max(best.get(document, floor), weight * score)
    return best


def test_a_method_of_ones_own_is_a_trial_with_its_own_options():
    grid = {"alpha": [0.3, 0.7], "floor": [0.0, 0.1], "rank_constant": [10], "calibration": ["min_max"]}
    custom = hf.fusion.Custom(largest, {"floor": 0.2})
    trials = fusion_trials(["rrf", largest, custom, hf.fusion.RRF(rank_constant=5)], grid, ["dense", "graph"])[2:]
    assert trials[:2] == [{"method": "rrf", "alpha": alpha, "rank_constant": 10} for alpha in (0.3, 0.7)]
    assert trials[2:6] == [
        {"method": largest, "alpha": alpha, "floor": floor, "calibration": "min_max"}
        for alpha in (0.3, 0.7)
        for floor in (0.0, 0.1)
    ]
    assert trials[6:8] == [{"method": custom, "alpha": alpha, "calibration": "min_max"} for alpha in (0.3, 0.7)]
    assert trials[8:] == [{"method": hf.fusion.RRF(rank_constant=5), "alpha": alpha} for alpha in (0.3, 0.7)]
    two = {name: LEGS[name] for name in ("dense", "graph")}
    lists = [run.take(ROWS).hits for run in two.values()]
    expected = hf.fuse(lists, method=largest, weights=(0.3, 0.7), floor=0.1, calibration="min_max", k=9)
    same(FusedLegs(two, k=9)(trials[3], ROWS), expected)


def test_a_sweep_names_a_method_of_ones_own():
    qrels = Qrels([f"q{row}" for row in range(40)], [[row] for row in range(40)])
    own, others = np.arange(40)[:, None], np.arange(40)[:, None] + 100
    scores = np.array([[2.0, 1.0]] * 40)
    legs = {
        "right": Run(hf.Hits(np.hstack([own, others]), scores)),
        "wrong": Run(hf.Hits(np.hstack([others + 100, others]), scores)),
    }
    grid = fusion_trials(["rrf", largest, hf.fusion.Custom(largest, {"floor": 0.2})], {"alpha": [0.1, 0.9]}, list(legs))
    found = sweep(FusedLegs(legs), qrels, grid[1:], baseline={"leg": "wrong"}, metric="hit@1")
    assert found.selected.options["alpha"] == 0.9
    names = [trial["options"].get("method") for trial in json.loads(json.dumps(found.to_dict()))["tune"]]
    assert names == [None, "rrf", "rrf", "largest", "largest", "largest(floor=0.2)", "largest(floor=0.2)"]
    assert {curve.label for curve in option_curves(found)["alpha"]} == {"rrf", "largest", "largest(floor=0.2)"}
    assert "largest(floor=0.2), alpha 0.9" in str(sweep_tables(found))
    chosen = Sweep(found.metric, found.tune, found.tune[4], found.test, found.test_runs)
    assert str(chosen).startswith("hit@1: selected method='largest', alpha=0.9, of 7 on ")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: FusedLegs({"a": LEGS["dense"]}), ("missing", "legs")),
        (lambda: FusedLegs({"a": LEGS["dense"], "b": LEGS["graph"].take([0])}), ("length", "legs")),
        (lambda: FusedLegs(LEGS)({"leg": "bm25"}, ROWS), ("choice", "leg", {"given": "bm25"})),
        (lambda: FusedLegs(LEGS)({"method": "rrf", "heat": 1}, ROWS), ("unknown", "heat")),
        (lambda: fusion_trials([], {}, ["a"]), ("empty", "methods")),
        (lambda: fusion_trials(["rank"], {}, ["a"]), ("choice", "methods", {"given": "rank"})),
        (
            lambda: fusion_trials(["rrf"], {"temperature": [1.0]}, ["a"]),
            ("unused", "grid", {"unused": "temperature"}),
        ),
        (
            lambda: fusion_trials(["rrf"], {"pool c": [1]}, ["a"]),
            ("unused", "grid", {"unused": "pool c"}),
        ),
        (lambda: fusion_trials(["rrf"], {"alpha": []}, ["a"]), ("empty", "grid['alpha']")),
        (
            lambda: fusion_trials(["boltzmann"], {"calibration": ["z_score"]}, ["a"]),
            ("unsupported", "methods"),
        ),
        (
            lambda: fusion_trials(["boltzmann", "rrf"], {"calibration": ["z_score"]}, ["a"]),
            ("unused", "grid", {"unused": "calibration"}),
        ),
        (
            lambda: fusion_trials(["boltzmann", "linear"], {"calibration": ["z_score"], "temperature": [1]}, ["a"]),
            ("unused", "grid", {"unused": "temperature"}),
        ),
    ],
)
def test_bad_calls_are_refused(call, error):
    with refused(InputError, *error):
        call()
