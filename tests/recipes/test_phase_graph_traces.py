"""PhaseGraph's traces: what each leg gave under every method."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import pytest
from hopfuse import fusion
from recipes.worlds import random_questions, random_world, weights_by_hand

LEGS = ("dense", "graph")
SUMS: list[dict[str, Any]] = [
    {},
    {"method": "linear", "calibration": "z_score"},
    {"method": "comb_sum", "alpha": 0.2},
    {"method": "rrf", "consensus": 0.5},
    {"method": "rbc"},
    {"method": "tsallis", "temperature": 0.4},
    {"method": "linear", "calibration": fusion.Calibration("theoretical_min_max", lower=(-1.0, 0.0), upper=(1.0, 0.5))},
]
OTHERS: list[dict[str, Any]] = [
    {"method": name}
    for name in fusion.METHODS
    if name not in ("boltzmann", "linear", "comb_sum", "rrf", "rbc", "tsallis")
]
OTHERS += [
    {"method": fusion.Boltzmann(wasserstein=1.0), "calibration": "min_max"},
    {"method": fusion.Tsallis(q=(1.0, 1.5))},
]


def traced(k: int = 6, **options: Any) -> tuple[Any, Any]:
    recipe = hf.recipes.PhaseGraph(random_world(11).index(), **options)
    found = recipe.search(**random_questions(12, batch=6), k=k, trace=True)
    assert found.traces is not None
    return recipe, found


@pytest.mark.parametrize("options", SUMS, ids=repr)
def test_contributions_add_up_where_the_method_is_a_sum(options: dict[str, Any]) -> None:
    recipe, found = traced(**options)
    for b, trace in enumerate(found.traces):
        for (passage, score), hit in zip(found.hits.row(b), trace["hits"], strict=True):
            assert (hit["passage"], hit["score"]) == (passage, score)
            assert sum(hit["contributions"].values()) + hit["consensus"] == pytest.approx(score, rel=1e-5, abs=1e-6)
            assert hit["consensus"] == (recipe.config.consensus if len(hit["ranks"]) == 2 else 0.0)
            for leg, rank in hit["ranks"].items():
                assert trace[leg][rank - 1]["passage"] == passage


@pytest.mark.parametrize("options", OTHERS, ids=repr)
def test_other_methods_say_ranks_alone(options: dict[str, Any]) -> None:
    _, found = traced(**options)
    for b, trace in enumerate(found.traces):
        assert [hit["passage"] for hit in trace["hits"]] == [passage for passage, _ in found.hits.row(b)]
        for hit in trace["hits"]:
            assert "contributions" not in hit
            assert hit["ranks"]
        assert not any({"share", "probability"} & set(row) for leg in LEGS for row in trace[leg])


@pytest.mark.parametrize(
    ("options", "scale", "temperature"),
    [
        ({}, "percentile", True),
        ({"calibration": "min_max", "temperature": 0.3}, "calibrated", True),
        ({"method": "quantum", "ties": "mean"}, "percentile", True),
        ({"method": "comb_mnz"}, "calibrated", False),
        ({"method": "rrf"}, None, False),
        ({"method": fusion.Boltzmann(wasserstein=1.0), "calibration": "min_max"}, "calibrated", False),
    ],
    ids=repr,
)
def test_a_pool_is_on_the_methods_scale(options: dict[str, Any], scale: str | None, temperature: bool) -> None:
    recipe, found = traced(**options)
    for b, trace in enumerate(found.traces):
        for leg in LEGS:
            rows, pool = trace[leg], found.lists[leg]
            assert [(row["passage"], row["score"]) for row in rows] == pool.row(b)
            assert (trace["temperatures"][leg] is not None) == (temperature and bool(rows))
            assert all(({"percentile", "calibrated"} & set(row)) == ({scale} - {None}) for row in rows)
            if scale is not None:
                scaled = hf.calibrate(pool, recipe.config.rule)
                assert [row[scale] for row in rows] == [score for _, score in scaled.row(b)]
    if "temperature" in options:
        assert found.traces[0]["temperatures"]["dense"] == 0.3


def test_a_trace_says_what_weighs_the_lists() -> None:
    _, found = traced()
    for b, trace in enumerate(found.traces):
        (dense, graph), w = weights_by_hand(found, *LEGS)[b], trace["direct"]["weight"]
        assert (dense, graph) == pytest.approx((0.6 + 0.4 * w, 1 - w))
        names = [seed["entity"] for seed in trace["seeds"]]
        assert ("names nothing" in trace["direct"]["reason"]) == (w == 1.0) == (not names)
    for options in ({"alpha": 0.3}, {"method": "max"}):
        _, fixed = traced(**options)
        assert "direct" not in fixed.traces[0]


def test_nothing_is_left_out_where_all_may_be_seen() -> None:
    _, found = traced()
    assert all(trace["left_out"] == [] and trace["allowed"] is None for trace in found.traces)
