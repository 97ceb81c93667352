"""Calibrations against SciPy, by hand, and on lists that have no spread."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.reference import Ranking, calibrate
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

METHODS = (
    "pit",
    "min_max",
    "max",
    "z_score",
    "l2",
    "rank",
    "theoretical_min_max",
    "three_sigma",
    "sum",
    "gaussian",
    "softmax",
    "none",
)
#: What a method cannot do without.
NEEDS: dict[str, dict[str, Any]] = {"theoretical_min_max": {"lower": -5.0}}
SCORES = st.lists(st.sampled_from([-3.0, -0.5, 0.0, 0.1, 0.1000001, 2.0, 7.5, 1e6]), min_size=1, max_size=15)


@settings(max_examples=80, deadline=None)
@given(SCORES, st.sampled_from(["strict", "weak", "mean", "rank"]))
def test_pit_is_percentileofscore(scores: list[float], ties: str) -> None:
    want = stats.percentileofscore(scores, scores, kind=ties) / 100
    np.testing.assert_allclose(calibrate([scores], "pit", ties=ties)[0], want, rtol=0, atol=1e-15)


@settings(max_examples=80, deadline=None)
@given(SCORES)
def test_pit_counts(scores: list[float]) -> None:
    n = len(scores)
    below = [sum(other < s for other in scores) for s in scores]
    up_to = [sum(other <= s for other in scores) for s in scores]
    want = {
        "strict": [a / n for a in below],
        "weak": [b / n for b in up_to],
        "mean": [(a + b) / (2 * n) for a, b in zip(below, up_to, strict=True)],
        "rank": [(a + b + 1) / (2 * n) for a, b in zip(below, up_to, strict=True)],
    }
    for ties, values in want.items():
        assert calibrate([scores], ties=ties)[0].tolist() == values
    assert calibrate([scores])[0].tolist() == want["strict"]
    average = stats.rankdata(scores, method="average") / n
    np.testing.assert_allclose(calibrate([scores], ties="rank")[0], average, rtol=0, atol=1e-15)
    assert calibrate([scores], ties="weak")[0].tolist() == (stats.rankdata(scores, method="max") / n).tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=12, unique=True))
def test_z_score_is_scipys(scores: list[float]) -> None:
    np.testing.assert_allclose(calibrate([scores], "z_score")[0], stats.zscore(scores), rtol=1e-6, atol=1e-9)


def test_by_hand() -> None:
    s = [4.0, 3.0, 0.0, -1.0]
    assert calibrate([s], "min_max")[0].tolist() == [1.0, 0.8, 0.2, 0.0]
    assert calibrate([s], "max")[0].tolist() == [1.0, 0.75, 0.0, -0.25]
    assert calibrate([[1.0, -4.0]], "max")[0].tolist() == [0.25, -1.0]
    assert calibrate([[4.0, 3.0]], "l2")[0].tolist() == pytest.approx([0.8, 0.6], abs=1e-15)
    assert calibrate([[3.0, 1.0]], "z_score")[0].tolist() == [1.0, -1.0]
    assert calibrate([s], "rank")[0].tolist() == [1.0, 0.75, 0.5, 0.25]
    assert calibrate([s], "none")[0].tolist() == s


@pytest.mark.parametrize("value", [0.1, 7.0, -2.5, 0.0])
@pytest.mark.parametrize("n", [1, 3, 10])
def test_equal_scores(value: float, n: int) -> None:
    def one(method: str, **options: Any) -> set[float]:
        return set(calibrate([[value] * n], method, **options)[0].tolist())

    assert one("pit") == {0.0}
    assert one("pit", ties="weak") == {1.0}
    assert one("pit", ties="mean") == {0.5}
    assert one("pit", ties="rank") == {(n + 1) / (2 * n)}
    assert one("min_max") == {1.0}
    assert one("z_score") == {0.0}
    assert one("max") == {float(np.sign(value))}
    assert one("none") == {value}
    (l2,) = one("l2")
    assert l2 == pytest.approx(np.sign(value) / np.sqrt(n), abs=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_hits_keep_ids_counts_and_padding(method: str) -> None:
    hits = hf.Hits.from_lists([[(4, 0.2), (1, 0.8), (6, -0.5)], [], [(3, 0.5)]])
    got = calibrate(hits, method, **NEEDS.get(method, {}))
    assert isinstance(got, Ranking)
    assert (got.ids == hits.ids).all()
    assert (got.counts == hits.counts).all()
    assert got.scores.dtype == np.float64
    assert np.isneginf(got.scores[1:, 1:]).all()
    for b, n in enumerate(hits.counts):
        assert (got.scores[b, :n] == calibrate([hits.scores[b, :n]], method, **NEEDS.get(method, {}))[0]).all()
    again = calibrate(got, method, **NEEDS.get(method, {}))
    assert (again.ids == hits.ids).all()


@pytest.mark.parametrize("method", METHODS)
def test_no_lists_and_empty_lists(method: str) -> None:
    options = NEEDS.get(method, {})
    assert calibrate([], method, **options) == []
    assert [row.size for row in calibrate([[], [1.0], []], method, **options)] == [0, 1, 0]


@settings(max_examples=40, deadline=None)
@given(SCORES, st.sampled_from([name for name in METHODS if name != "rank"]))
def test_order_is_kept(scores: list[float], method: str) -> None:
    ordered = calibrate([sorted(scores, reverse=True)], method, **NEEDS.get(method, {}))[0]
    assert np.isfinite(ordered).all()
    assert (np.diff(ordered) <= 0).all()


def test_further_calibrations_by_hand() -> None:
    assert calibrate([[3.0, 1.0, -1.0]], "theoretical_min_max", lower=-1.0)[0].tolist() == [1.0, 0.5, 0.0]
    assert calibrate([[3.0, 1.0, -2.0]], "theoretical_min_max", lower=-1.0, upper=7.0)[0].tolist() == [0.5, 0.25, 0.0]
    assert calibrate([[9.0, 5.0]], "theoretical_min_max", lower=0.0, upper=5.0)[0].tolist() == [1.0, 1.0]
    assert calibrate([[-1.0, -1.0]], "theoretical_min_max", lower=-1.0)[0].tolist() == [0.0, 0.0]
    assert calibrate([[4.0, 2.0, 1.0]], "sum")[0].tolist() == [0.75, 0.25, 0.0]
    # Mean 2, sample deviation sqrt(2): 1/2 +- 1/(6 sqrt 2).
    assert calibrate([[3.0, 1.0]], "three_sigma")[0].tolist() == pytest.approx([0.617851, 0.382149], abs=1e-6)
    assert calibrate([[1000.0, *[0.0] * 20]], "three_sigma")[0][0] == 1.0
    assert calibrate([[np.log(3.0), 0.0]], "softmax")[0].tolist() == pytest.approx([0.75, 0.25], abs=1e-15)
    assert calibrate([[2 * np.log(3.0), 0.0]], "softmax", temperature=2.0)[0][0] == pytest.approx(0.75, abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_gaussian_is_scipys_normal_quantile_of_mid_ranks(scores: list[float]) -> None:
    ranks = (stats.rankdata(scores) - 0.5) / len(scores)
    np.testing.assert_allclose(calibrate([scores], "gaussian")[0], stats.norm.ppf(ranks), rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_probabilities_sum_to_1(scores: list[float]) -> None:
    assert calibrate([scores], "sum")[0].sum() == pytest.approx(1.0, abs=1e-12)
    assert calibrate([scores], "softmax", temperature=3.0)[0].sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_scores_under_further_calibrations(n: int) -> None:
    tied = [[7.0] * n]
    assert set(calibrate(tied, "three_sigma")[0].tolist()) == {0.5}
    assert set(calibrate(tied, "sum")[0].tolist()) == {1.0 / n}
    assert set(calibrate(tied, "gaussian")[0].tolist()) == {0.0}
    assert set(calibrate(tied, "softmax")[0].tolist()) == {1.0 / n}
    assert set(calibrate(tied, "theoretical_min_max", lower=0.0)[0].tolist()) == {1.0}


@pytest.mark.parametrize("method", METHODS)
def test_single_and_equal_say_what_a_list_without_a_spread_becomes(method: str) -> None:
    lists = [[4.0], [4.0, 4.0], [4.0, 1.0], []]
    options = NEEDS.get(method, {})
    plain = calibrate(lists, method, **options)
    stated = calibrate(lists, method, single=0.25, equal=-3.0, **options)
    assert [row.tolist() for row in stated[:2]] == [[0.25], [-3.0, -3.0]]
    assert [row.tolist() for row in stated[2:]] == [row.tolist() for row in plain[2:]]
    assert calibrate(lists, method, single=0.25, **options)[1].tolist() == plain[1].tolist()
    assert calibrate(lists, method, equal=0.25, **options)[0].tolist() == plain[0].tolist()


@pytest.mark.parametrize(
    ("method", "options", "refusal"),
    [
        ("theoretical_min_max", {}, ("order", "lower")),
        ("theoretical_min_max", {"lower": 1.0, "upper": 1.0}, ("order", "lower")),
        ("min_max", {"lower": 0.0}, ("unused", "lower")),
        ("softmax", {"temperature": 0.0}, ("range", "temperature")),
        ("pit", {"temperature": 1.0}, ("unused", "temperature")),
    ],
)
def test_options_that_are_refused(method: str, options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        calibrate([[1.0, 0.0]], method, **options)


@pytest.mark.parametrize(
    ("lists", "method", "ties", "refusal"),
    [
        ([[1.0]], "logit", None, ("choice", "calibration")),
        ([[1.0]], "pit", "average", ("choice", "ties")),
        ([[1.0]], "min_max", "strict", ("unused", "ties")),
        ([[np.nan]], "pit", None, ("finite", "scores")),
        ([[[1.0]]], "pit", None, ("shape", "scores")),
    ],
)
def test_calibrate_refuses(lists: Any, method: str, ties: str | None, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        calibrate(lists, method, ties=ties)
