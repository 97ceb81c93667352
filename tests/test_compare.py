"""Every comparison finds planted errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compare import (
    assert_bitwise,
    assert_hits_close,
    assert_hits_equal,
    assert_hits_wellformed,
    assert_ppr,
    assert_ppr_hits,
)

EXACT = np.array([[0.9, 0.5, 0.5, 0.3, 0.1], [0.2, -np.inf, 0.7, -np.inf, -np.inf]])


def hits(**changes: Any) -> SimpleNamespace:
    """Return the correct top 3 of EXACT, in arrays that a test may change."""
    right = {
        "ids": np.array([[0, 1, 2], [2, 0, -1]], np.int64),
        "scores": np.array([[0.9, 0.5, 0.5], [0.7, 0.2, -np.inf]], np.float32),
        "counts": np.array([3, 2], np.int64),
    }
    return SimpleNamespace(**{**right, **changes})


def spoiled(name: str, at: Any, value: Any) -> SimpleNamespace:
    wrong = hits()
    getattr(wrong, name)[at] = value
    return wrong


def swapped_tie() -> SimpleNamespace:
    wrong = hits()
    wrong.ids[0, 1:] = [2, 1]
    return wrong


def missing_last() -> SimpleNamespace:
    wrong = hits()
    wrong.ids[1, 1], wrong.scores[1, 1], wrong.counts[1] = -1, -np.inf, 1
    return wrong


def not_the_best() -> SimpleNamespace:
    wrong = hits()
    wrong.ids[0], wrong.scores[0] = [0, 1, 3], [0.9, 0.5, 0.3]
    return wrong


PLANTED = {
    "NaN score": spoiled("scores", (0, 1), np.nan),
    "NaN padding": spoiled("scores", (1, 2), np.nan),
    "infinite score": spoiled("scores", (0, 0), np.inf),
    "swapped tie": swapped_tie(),
    "wrong order": hits(scores=hits().scores[:, [1, 0, 2]], ids=hits().ids[:, [1, 0, 2]]),
    "one wrong id": spoiled("ids", (0, 2), 4),
    "an id that is no candidate": spoiled("ids", (1, 1), 3),
    "an id beyond the oracle": spoiled("ids", (1, 1), 5),
    "missing item": missing_last(),
    "not the best": not_the_best(),
    "wrong padding id": spoiled("ids", (1, 2), 4),
    "padding id below -1": spoiled("ids", (1, 2), -2),
    "wrong padding score": spoiled("scores", (1, 2), 0.0),
    "count too low": spoiled("counts", 0, 2),
    "count too high": spoiled("counts", 1, 3),
    "count beyond k": spoiled("counts", 0, 4),
    "negative count": spoiled("counts", 0, -1),
    "scaled score": hits(scores=hits().scores * np.float32(1.01)),
    "duplicated id": spoiled("ids", (0, 2), 1),
    "valid id is padding": spoiled("ids", (0, 2), -1),
    "a row short of shape": hits(ids=hits().ids[:1], scores=hits().scores[:1]),
    "counts of another batch": hits(counts=np.array([3, 2, 0])),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_hits_are_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        assert_hits_equal(PLANTED[name], hits())
    with pytest.raises(AssertionError):
        assert_hits_close(PLANTED[name], EXACT, atol=1e-6)


def test_right_hits_pass() -> None:
    assert_hits_wellformed(hits())
    assert_hits_equal(hits(), hits())
    assert_hits_close(hits(), EXACT, atol=1e-6)


def test_two_equal_wrong_hits_do_not_vouch_for_each_other() -> None:
    for name in ("NaN score", "swapped tie", "wrong padding id", "duplicated id", "count too high"):
        with pytest.raises(AssertionError):
            assert_hits_equal(PLANTED[name], PLANTED[name])


def test_hits_equal_sees_dtypes_and_one_ulp() -> None:
    one_ulp = np.nextafter(np.float32(0.9), np.float32(1))
    for wrong in (
        hits(scores=hits().scores.astype(np.float64)),
        hits(ids=hits().ids.astype(np.int32)),
        spoiled("scores", (0, 0), one_ulp),
    ):
        with pytest.raises(AssertionError):
            assert_hits_equal(wrong, hits())


def test_hits_close_refuses_a_nan_oracle() -> None:
    with pytest.raises(AssertionError, match="NaN in the oracle"):
        assert_hits_close(hits(), np.where(EXACT == 0.1, np.nan, EXACT), atol=1e-6)


def test_hits_close_allows_either_of_two_near_ties() -> None:
    exact = EXACT.copy()
    exact[0, 3] = 0.5 + 1e-7
    assert_hits_close(hits(), exact, atol=1e-6)
    with pytest.raises(AssertionError, match="beat the last"):
        assert_hits_close(hits(), exact, atol=4e-8)


def test_hits_close_relative_tolerance() -> None:
    scaled = hits(scores=hits().scores * np.float32(1.001))
    assert_hits_close(scaled, EXACT, atol=0, rtol=2e-3)
    with pytest.raises(AssertionError, match="off by"):
        assert_hits_close(scaled, EXACT, atol=0, rtol=5e-4)


def test_hits_close_may_miss_scores_that_vanish() -> None:
    exact = EXACT.copy()
    exact[1, 4] = 1e-50
    with pytest.raises(AssertionError, match="left out"):
        assert_hits_close(hits(), exact, atol=1e-6)
    assert_hits_close(hits(), exact, atol=1e-6, may_miss_below=1e-45)


X_EXACT = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])


def ppr_result(**changes: Any) -> SimpleNamespace:
    right = {
        "scores": X_EXACT.astype(np.float32),
        "iterations": np.array([7, 0]),
        "residual": np.array([1e-8, 0.0]),
        "bound": np.array([2e-8, 0.0]),
        "converged": np.array([True, True]),
    }
    return SimpleNamespace(**{**right, **changes})


def off_by(error: float) -> np.ndarray:
    x = X_EXACT.copy()
    x[0] += [error, -error, 0]
    return x.astype(np.float32)


PLANTED_PPR = {
    "NaN score": ppr_result(scores=np.where(X_EXACT == 0.5, np.nan, X_EXACT).astype(np.float32)),
    "infinite score": ppr_result(scores=np.where(X_EXACT == 0.5, np.inf, X_EXACT).astype(np.float32)),
    "error above the bound": ppr_result(scores=off_by(1e-6)),
    "NaN bound": ppr_result(bound=np.array([np.nan, 0])),
    "infinite bound": ppr_result(bound=np.array([np.inf, 0])),
    "negative bound": ppr_result(bound=np.array([1e-8, -1.0])),
    "NaN residual": ppr_result(residual=np.array([np.nan, 0])),
    "negative score": ppr_result(scores=off_by(0.3), bound=np.array([1.0, 0])),
    "does not sum to 1": ppr_result(scores=(X_EXACT * 0.9).astype(np.float32), bound=np.array([1.0, 1.0])),
    "float64 scores": ppr_result(scores=X_EXACT),
    "a row short": ppr_result(scores=X_EXACT[:1].astype(np.float32)),
    "evidence of another batch": ppr_result(bound=np.array([2e-8])),
    "converged is not boolean": ppr_result(converged=np.array([1, 1])),
    "claims convergence": ppr_result(bound=np.array([1e-3, 0])),
    "denies convergence": ppr_result(converged=np.array([True, False])),
    "understated residual": ppr_result(residual=np.array([1e-9, 0])),
}


@pytest.mark.parametrize("name", PLANTED_PPR)
def test_planted_ppr_results_are_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        assert_ppr(PLANTED_PPR[name], X_EXACT, residual=np.array([1e-8, 0.0]), tol=1e-6)


def test_right_ppr_results_pass() -> None:
    assert_ppr(ppr_result(), X_EXACT, residual=np.array([1e-8, 0.0]), tol=1e-6)
    assert_ppr(ppr_result(scores=off_by(1e-6), bound=np.array([3e-6, 0])), X_EXACT)
    with pytest.raises(AssertionError):
        assert_ppr(ppr_result(), np.where(X_EXACT == 0.25, np.nan, X_EXACT))


def ppr_hits(**changes: Any) -> SimpleNamespace:
    right = {
        "ids": np.array([[0, 1], [0, -1]]),
        "scores": np.array([[0.5, 0.25], [1.0, -np.inf]], np.float32),
        "counts": np.array([2, 1]),
        "score_bounds": np.zeros((2, 2), np.float32),
        "proven": np.array([True, True]),
    }
    return SimpleNamespace(**{**right, **changes})


PLANTED_PPR_HITS = {
    "outside its bound": ppr_hits(scores=np.array([[0.5001, 0.25], [1.0, -np.inf]], np.float32)),
    "NaN bound": ppr_hits(score_bounds=np.array([[np.nan, 0], [0, 0]], np.float32)),
    "wrong proven id": ppr_hits(ids=np.array([[0, 3], [0, -1]]), score_bounds=np.ones((2, 2), np.float32)),
    "a proven id is missing": ppr_hits(
        ids=np.array([[0, -1], [0, -1]]),
        scores=np.array([[0.5, -np.inf], [1.0, -np.inf]], np.float32),
        counts=np.array([1, 1]),
    ),
    "a score of 0": ppr_hits(
        ids=np.array([[0, 1], [0, 1]]),
        scores=np.array([[0.5, 0.25], [1.0, 0.0]], np.float32),
        counts=np.array([2, 2]),
        proven=np.array([True, False]),
    ),
}


@pytest.mark.parametrize("name", PLANTED_PPR_HITS)
def test_planted_ppr_hits_are_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        assert_ppr_hits(PLANTED_PPR_HITS[name], np.column_stack([X_EXACT, [0.1, 0.0]]))


def test_right_ppr_hits_pass() -> None:
    assert_ppr_hits(ppr_hits(), X_EXACT)
    assert_ppr_hits(ppr_hits(ids=np.array([[0, 2], [0, -1]])), X_EXACT)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (np.float32([0.0]), np.float32([-0.0])),
        (np.float32([np.nan]), np.float32([np.nan])),
        (np.float32([1.0]), np.float64([1.0])),
        (np.float32([1.0]), np.float32([[1.0]])),
        (np.float32([1.0, 2.0]), np.float32([1.0, np.nextafter(np.float32(2), np.float32(3))])),
        (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [4, 3]])),
        (np.array([True, False]), np.array([True, True])),
        (np.int64(3), np.int64(2)),
    ],
)
def test_bitwise_catches(actual: np.ndarray, expected: np.ndarray) -> None:
    with pytest.raises(AssertionError):
        assert_bitwise(actual, expected)


@pytest.mark.parametrize("value", [np.float32([[1.5, -0.0]]), np.zeros((0, 3)), np.arange(6).reshape(2, 3).T, 3.0])
def test_bitwise_passes_equal_bits(value: Any) -> None:
    assert_bitwise(value, np.array(value, copy=True))
    assert_bitwise(np.array(value, order="F"), value)
