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

METHODS = ["pit", "min_max", "max", "z_score", "l2", "rank", "none"]
TIES = ["strict", "weak", "mean", "rank"]
ULP = float(np.finfo(np.float32).eps)


def one_list(scores: Any) -> hf.Hits:
    return hf.Hits(np.arange(len(scores))[None], np.asarray(scores, np.float32)[None])


def valid(hits: Any, b: int) -> NDArray[Any]:
    return np.asarray(hits.scores[b, : hits.counts[b]])


def check(hits: hf.Hits, method: Any, *, atol: float = 0.0, **options: Any) -> hf.Hits:
    """Within a few roundings of the oracle, ids, counts and padding untouched."""
    done, exact = hf.calibrate(hits, method, **options), reference.calibrate(hits, method, **options)
    assert_bitwise(done.ids, hits.ids, "ids")
    assert_bitwise(done.counts, hits.counts, "counts")
    for b in range(len(hits)):
        np.testing.assert_allclose(valid(done, b), valid(exact, b), rtol=8 * ULP, atol=atol)
        assert np.isneginf(done.scores[b, hits.counts[b] :]).all()
    return done


@pytest.mark.parametrize("grid", [None, 2, 5])
@pytest.mark.parametrize("method", METHODS)
def test_random_lists(isa: str, method: str, grid: int | None) -> None:
    (hits,) = random_lists(np.random.default_rng(1), 50, 1, width=40, ids=60, grid=grid)
    check(hits, method, atol=1e-5 if method == "z_score" else 1e-7)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("grid", [None, 1, 2, 5])
def test_percentile_ranks_are_the_nearest_float32(isa: str, ties: Any, grid: int | None) -> None:
    (hits,) = random_lists(np.random.default_rng(2), 50, 1, width=40, ids=60, grid=grid)
    done, exact = hf.calibrate(hits, "pit", ties=ties), reference.calibrate(hits, "pit", ties=ties)
    assert_bitwise(done.scores, exact.scores.astype(np.float32))


def test_rank_and_none_are_the_nearest_float32(isa: str) -> None:
    (hits,) = random_lists(np.random.default_rng(3), 50, 1, width=40, ids=60, grid=4)
    for method in ("rank", "none"):
        exact = reference.calibrate(hits, method)
        assert_bitwise(hf.calibrate(hits, method).scores, exact.scores.astype(np.float32), method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e-30, 1e30])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_singletons_and_all_tied_lists(isa: str, method: str, value: float, size: int) -> None:
    check(one_list([value] * size), method)


@pytest.mark.parametrize("method", METHODS)
def test_empty_lists_stay_empty(isa: str, method: str) -> None:
    hits = hf.Hits(np.full((3, 4), -1), np.zeros((3, 4)))
    done = check(hits, method)
    assert np.isneginf(done.scores).all()
    assert hf.calibrate(hf.Hits(np.zeros((2, 0), int), np.zeros((2, 0))), method).shape == (2, 0)
    assert hf.calibrate(hf.Hits(np.zeros((0, 3), int), np.zeros((0, 3))), method).shape == (0, 3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "scores",
    [
        [3e38, 1.0, -3e38],
        [3.4e38, 3.3e38, 3.2e38],
        [1e-40, 5e-41, 1.4e-45],
        [2e38, 1e-38, 0.0, -1e-45],
        [1e20, 1e10, 1.0, -1e15],
        [-1e-30, -2e-30, -3e30],
    ],
)
def test_scores_at_the_ends_of_float32(isa: str, method: str, scores: list[float]) -> None:
    done = check(one_list(scores), method, atol=1e-5 if method in ("z_score", "min_max") else 1e-44)
    assert np.isfinite(done.scores).all()


@given(
    scores=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=70),
    method=st.sampled_from([m for m in METHODS if m != "z_score"]),
)
def test_drawn_lists(isa: str, scores: list[float], method: str) -> None:
    check(one_list(scores), method, atol=1e-7)


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=70))
def test_drawn_z_scores(isa: str, scores: list[int]) -> None:
    check(one_list(scores), "z_score", atol=1e-4)


@given(
    scores=st.lists(st.floats(-(2.0**120), 2.0**120, width=32), min_size=1, max_size=40),
    method=st.sampled_from(METHODS),
)
def test_calibration_never_reverses_an_order(isa: str, scores: list[float], method: Any) -> None:
    values = valid(hf.calibrate(one_list(scores), method), 0)
    assert (np.diff(values) <= 0).all()
    assert np.isfinite(values).all()


def test_long_lists_use_the_blocked_tree(isa: str) -> None:
    """More than one block of 1024 values, and more than 32 blocks."""
    rng = np.random.default_rng(4)
    for size in (31, 32, 33, 1023, 1024, 1025, 40_000):
        hits = one_list(rng.random(size))
        for method in ("z_score", "l2"):
            check(hits, method, atol=2e-6)


def test_a_sequence_of_lists_is_calibrated_list_by_list(isa: str) -> None:
    lists = random_lists(np.random.default_rng(5), 4, 3)
    done = hf.calibrate(lists, "pit")
    assert isinstance(done, list)
    for one, out in zip(lists, done, strict=True):
        assert_bitwise(out.scores, hf.calibrate(one, "pit").scores)
