"""calibrate on every kernel variant against the float64 oracle."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_lists
from compare import assert_bitwise
from hopfuse import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

METHODS = list(hf.fusion.calibration.CALIBRATIONS)
TIES = ["strict", "weak", "mean", "rank"]
ULP = float(np.finfo(np.float32).eps)


#: What a method cannot do without.
NEEDS: dict[str, dict[str, Any]] = {"theoretical_min_max": {"lower": -3.3e38}}
#: Where differences of scores are divided by how far they are apart.
SPREAD = ("z_score", "min_max", "three_sigma", "sum")


def one_list(scores: Any) -> hf.Hits:
    return hf.Hits(np.arange(len(scores))[None], np.asarray(scores, np.float32)[None])


def a_list_each(rows: list[list[float]]) -> hf.Hits:
    """One batch of these lists."""
    return hf.Hits.from_lists([list(enumerate(np.float32(row).tolist())) for row in rows])


def valid(hits: Any, b: int) -> NDArray[Any]:
    return np.asarray(hits.scores[b, : hits.counts[b]])


def check(hits: hf.Hits, method: Any, *, atol: float = 0.0, **options: Any) -> hf.Hits:
    """Within a few roundings of the oracle, ids, counts and padding untouched."""
    options = NEEDS.get(method, {}) | options
    done, exact = hf.calibrate(hits, method, **options), reference.calibrate(hits, method, **options)
    assert_bitwise(done.ids, hits.ids, "ids")
    assert_bitwise(done.counts, hits.counts, "counts")
    for b in range(len(hits)):
        np.testing.assert_allclose(valid(done, b), valid(exact, b), rtol=8 * ULP, atol=atol)
        assert np.isneginf(done.scores[b, hits.counts[b] :]).all()
    return done


@pytest.mark.parametrize("method", METHODS)
def test_random_lists(variant: str, method: str) -> None:
    (hits,) = random_lists(np.random.default_rng(1), 84, 1, width=70, ids=90, grid=(None, 1, 2, 5))
    check(hits, method, atol=1e-5 if method == "z_score" else 4e-7)


@pytest.mark.parametrize("ties", TIES)
def test_percentile_ranks_are_the_nearest_float32(variant: str, ties: Any) -> None:
    (hits,) = random_lists(np.random.default_rng(2), 200, 1, width=40, ids=60, grid=(None, 1, 2, 5))
    done, exact = hf.calibrate(hits, "pit", ties=ties), reference.calibrate(hits, "pit", ties=ties)
    assert_bitwise(done.scores, exact.scores.astype(np.float32))


def test_rank_and_none_are_the_nearest_float32(variant: str) -> None:
    (hits,) = random_lists(np.random.default_rng(3), 50, 1, width=40, ids=60, grid=4)
    for method in ("rank", "none"):
        exact = reference.calibrate(hits, method)
        assert_bitwise(hf.calibrate(hits, method).scores, exact.scores.astype(np.float32), method)


@pytest.mark.parametrize("method", METHODS)
def test_singletons_and_all_tied_lists(variant: str, method: str) -> None:
    check(a_list_each([[value] * size for value in (0.0, 1.0, -3.5, 1e-30, 1e30) for size in (1, 2, 7)]), method)


@pytest.mark.parametrize("method", METHODS)
def test_empty_lists_stay_empty(variant: str, method: str) -> None:
    hits = hf.Hits(np.full((3, 4), -1), np.zeros((3, 4)))
    done = check(hits, method)
    assert np.isneginf(done.scores).all()
    options = NEEDS.get(method, {})
    assert hf.calibrate(hf.Hits(np.zeros((2, 0), int), np.zeros((2, 0))), method, **options).shape == (2, 0)
    assert hf.calibrate(hf.Hits(np.zeros((0, 3), int), np.zeros((0, 3))), method, **options).shape == (0, 3)


@pytest.mark.parametrize("method", METHODS)
def test_scores_at_the_ends_of_float32(variant: str, method: str) -> None:
    lists = a_list_each(
        [
            [3e38, 1.0, -3e38],
            [3.4e38, 3.3e38, 3.2e38],
            [1e-40, 5e-41, 1.4e-45],
            [2e38, 1e-38, 0.0, -1e-45],
            [1e20, 1e10, 1.0, -1e15],
            [-1e-30, -2e-30, -3e30],
            [0.0, -0.0, 0.0, -0.0],
        ]
    )
    done = check(lists, method, atol=1e-5 if method in SPREAD else 4e-7 if method == "gaussian" else 1e-44)
    assert all(np.isfinite(valid(done, b)).all() for b in range(len(lists)))


@pytest.mark.every_order
@pytest.mark.parametrize("method", METHODS)
def test_orders_of_threads(variant: str, method: str) -> None:
    (hits,) = random_lists(np.random.default_rng(9), 3, 1, width=35, ids=50, grid=20)
    check(hits, method, atol=1e-5)


def test_nothing_to_calibrate_launches_nothing(runtime: Any) -> None:
    for shape in ((0, 3), (2, 0)):
        hf.calibrate(hf.Hits(np.zeros(shape, int), np.zeros(shape)), "pit")
    assert not runtime.launches


@given(
    scores=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=70),
    method=st.sampled_from([m for m in METHODS if m not in ("z_score", "three_sigma", "sum", "softmax")]),
)
def test_drawn_lists(variant: str, scores: list[float], method: str) -> None:
    check(one_list(scores), method, atol=4e-7)


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=70))
def test_drawn_whole_scores(variant: str, scores: list[int]) -> None:
    check(one_list(scores), "z_score", atol=1e-4)
    check(one_list(scores), "three_sigma", atol=2e-5)
    check(one_list(scores), "sum", atol=1e-6)
    check(one_list(scores), "softmax", temperature=25.0, atol=1e-6)


@given(
    scores=st.lists(st.floats(-(2.0**120), 2.0**120, width=32), min_size=1, max_size=40),
    method=st.sampled_from(METHODS),
)
def test_calibration_never_reverses_an_order(variant: str, scores: list[float], method: Any) -> None:
    values = valid(hf.calibrate(one_list(scores), method, **NEEDS.get(method, {})), 0)
    assert (np.diff(values) <= 0).all()
    assert np.isfinite(values).all()


def test_long_lists_use_the_blocked_tree(variant: str) -> None:
    """More than one block of 1024 values, more than 32 blocks, and more than two levels."""
    rng = np.random.default_rng(4)
    for size in (31, 32, 33, 1023, 1024, 1025, 40_000):
        hits = one_list(rng.random(size))
        for method in ("z_score", "l2"):
            check(hits, method, atol=2e-6)
    check(one_list(rng.random(1024 * 1024 + 1030)), "l2", atol=2e-6)


def test_a_sequence_of_lists_is_calibrated_list_by_list(variant: str) -> None:
    lists = random_lists(np.random.default_rng(5), 4, 3)
    done = hf.calibrate(lists, "pit")
    assert isinstance(done, list)
    for one, out in zip(lists, done, strict=True):
        assert_bitwise(out.scores, hf.calibrate(one, "pit").scores)


@pytest.mark.parametrize("method", METHODS)
def test_lists_of_one_score_and_of_equal_scores(variant: str, method: str) -> None:
    lists = a_list_each([[3.0], [3.0] * 2, [3.0] * 7, [5.0, 5.0, 1.0]])
    for single, equal in ((0.25, -2.0), (0.0, None), (None, 0.5), (None, None)):
        done = check(lists, method, single=single, equal=equal, atol=4e-7)
        for b, stated in enumerate((single, equal, equal)):
            if stated is not None:
                assert set(valid(done, b).tolist()) == {stated}


@pytest.mark.parametrize(("lower", "upper"), [(0.0, None), (0.0, 10.0), (-1.0, 1.0), (2.0, 3.0), (-3e38, 3.3e38)])
def test_bounds_that_the_scorer_states(variant: str, lower: float, upper: float | None) -> None:
    for scores in ([4.0, 3.0, 2.5, 2.0, 0.0], [0.5], [2.0, 2.0], [-1.0, -2.0], [3e38, 0.0, -3e38]):
        values = valid(check(one_list(scores), "theoretical_min_max", lower=lower, upper=upper, atol=2e-7), 0)
        assert ((values >= 0) & (values <= 1)).all()


def test_bounds_are_each_lists_own(variant: str) -> None:
    lists = [one_list([0.5, -0.5]), one_list([8.0, 2.0])]
    done = hf.calibrate(lists, "theoretical_min_max", lower=(-1.0, 0.0), upper=(1.0, 16.0))
    assert [one.scores.tolist() for one in done] == [[[0.75, 0.25]], [[0.5, 0.125]]]


@pytest.mark.parametrize("temperature", [1e-38, 1e-3, 0.3, 1.0, 50.0, 1e30])
def test_softmax_at_any_temperature(variant: str, temperature: float) -> None:
    rng = np.random.default_rng(6)
    for scores in (rng.standard_normal(60), [3e38, 0.0, -3e38], [7.0] * 5):
        values = valid(
            check(one_list(scores), "softmax", temperature=temperature, atol=2e-6 / min(1.0, temperature)), 0
        )
        assert abs(values.astype(np.float64).sum() - 1.0) < 1e-5


def test_normal_quantiles_are_within_their_stated_error_and_symmetric(variant: str) -> None:
    """Mid-ranks of lists without ties: 1/(2n), 3/(2n), ... to both tails."""
    for size in (1, 2, 3, 10, 1001, 65_536):
        values = valid(hf.calibrate(one_list(np.arange(size)), "gaussian"), 0)
        exact = valid(reference.calibrate(one_list(np.arange(size)), "gaussian"), 0)
        assert (np.abs(values - exact) <= 4e-7 * np.maximum(np.abs(exact), 1.0)).all()
        assert_bitwise(values, -values[::-1] + np.float32(0))
        assert (np.diff(values) < 0).all()


def test_three_sigma_cuts_at_three_deviations(variant: str) -> None:
    values = valid(check(one_list([1000.0, *range(30)]), "three_sigma", atol=1e-6), 0)
    assert values[0] == 1.0
    assert (values[1:] < 0.5).all()
