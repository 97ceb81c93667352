"""Comparisons of results. Every one fails for NaN; test_compare.py gives each of them wrong results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PAD_ID = -1
ORACLE_SLACK = 1e-13


def assert_bitwise(actual: Any, expected: Any, what: str = "array") -> None:
    """Check for the same dtype, shape and bits (0.0 is not -0.0), without NaN on either side."""
    a, b = np.asarray(actual), np.asarray(expected)
    assert a.dtype == b.dtype, f"{what}: dtype {a.dtype}, expected {b.dtype}"
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    for side, array in (("actual", a), ("expected", b)):
        assert not _has_nan(array), f"{what}: NaN in {side}"
    differ = (_bytes(a) != _bytes(b)).any(axis=1).reshape(a.shape)
    if differ.any():
        at = tuple(int(i) for i in np.argwhere(differ)[0])
        raise AssertionError(f"{what}: {int(differ.sum())} of {a.size} differ, first at {at}: {a[at]!r} != {b[at]!r}")


def assert_hits_wellformed(hits: Any) -> None:
    """Check that shapes agree, counts are in 0 .. k, padding is -1/-inf, ids are unique, scores finite and in order."""
    ids, scores, counts = np.asarray(hits.ids), np.asarray(hits.scores), np.asarray(hits.counts)
    assert ids.ndim == 2, f"ids have shape {ids.shape}"
    assert ids.shape == scores.shape, f"ids {ids.shape}, scores {scores.shape}"
    assert counts.shape == ids.shape[:1], f"counts {counts.shape} for {ids.shape[0]} rows"
    assert not _has_nan(scores), "NaN score"
    assert ((counts >= 0) & (counts <= ids.shape[1])).all(), f"counts {counts} outside 0..{ids.shape[1]}"
    for b, n in enumerate(counts):
        _check_row(b, ids[b], scores[b], int(n))


def assert_rows_equal(actual: Any, expected: Any) -> None:
    """Check that both are well-formed with the same hits in each row, bit for bit; the padding may differ."""
    width = max(actual.ids.shape[1], expected.ids.shape[1])
    assert_hits_equal(*(_Widened(hits, width) for hits in (actual, expected)))


class _Widened:
    def __init__(self, hits: Any, width: int) -> None:
        assert_hits_wellformed(hits)
        room = ((0, 0), (0, width - hits.ids.shape[1]))
        self.ids = np.pad(hits.ids, room, constant_values=PAD_ID)
        self.scores = np.pad(hits.scores, room, constant_values=-np.inf)
        self.counts = hits.counts


def assert_hits_equal(actual: Any, expected: Any) -> None:
    """Check that both are well-formed with the same bits in ids, scores and counts, including the padding."""
    for name in ("counts", "ids", "scores"):
        assert_bitwise(getattr(actual, name), getattr(expected, name), name)
    assert_hits_wellformed(actual)


def assert_hits_close(
    hits: Any, oracle_scores: Any, *, atol: float, rtol: float = 0.0, may_miss_below: float = -np.inf
) -> None:
    """Check that a ranking is correct within the tolerance tol(v) = atol + rtol |oracle_scores(v)|.

    Every returned score is within tol of the oracle's for that id; no candidate that was left out
    beats the last returned one by more than the two tolerances; and a row is shorter than
    k only where the candidates end.

    Parameters
    ----------
    oracle_scores : (B, N) float64
        The exact score of every id; -inf where an id is not a candidate.
    may_miss_below : float
        A row may also be short where every candidate left out scores at most this (for scores that
        round to 0).
    """
    exact = np.asarray(oracle_scores, np.float64)
    assert not _has_nan(exact), "NaN in the oracle's scores"
    assert_hits_wellformed(hits)
    assert exact.ndim == 2, f"the oracle has shape {exact.shape}"
    assert len(exact) == len(hits.counts), f"oracle {exact.shape} for {len(hits.counts)} rows"
    tol = atol + rtol * np.abs(np.where(np.isfinite(exact), exact, 0.0))
    for b, n in enumerate(hits.counts):
        ids, scores = hits.ids[b, :n], hits.scores[b, :n]
        assert (ids < exact.shape[1]).all(), f"row {b}: id {ids.max()} is outside the oracle's {exact.shape[1]}"
        _check_scores(b, scores, exact[b, ids], tol[b, ids])
        if n < hits.ids.shape[1]:
            _check_none_left_out(b, ids, exact[b], may_miss_below)
        else:
            _check_none_better(b, ids, exact[b], tol[b])


def assert_ppr(
    result: Any, x_exact: Any, *, residual: Any = None, tol: float | None = None, sum_tol: float = 1e-5
) -> None:
    """Check that a PPR result is a distribution, and that its certificate is true.

    For every row: entries finite and >= 0, sum 1 within `sum_tol`, |x - x*|_1 <= bound, bound and
    residual finite and >= 0. Given the oracle's `residual` of the returned scores, the claimed one is no
    less; given `tol`, converged is exactly (bound <= tol).
    """
    x, exact = np.asarray(result.scores), np.asarray(x_exact, np.float64)
    assert x.dtype == np.float32, f"scores are {x.dtype}"
    assert x.shape == exact.shape, f"scores {x.shape}, oracle {exact.shape}"
    evidence = {name: np.asarray(getattr(result, name)) for name in ("iterations", "residual", "bound", "converged")}
    for name, values in evidence.items():
        assert values.shape == x.shape[:1], f"{name} has shape {values.shape} for {x.shape[0]} rows"
        assert _finite_and_at_least_0(values), f"{name} is {values}"
    assert evidence["converged"].dtype == bool, f"converged has dtype {evidence['converged'].dtype}"
    assert np.isfinite(exact).all(), "the oracle's scores are not finite"
    assert np.isfinite(x).all(), "scores are not finite"
    assert (x >= 0).all(), f"negative score {x.min()}"
    sums = x.astype(np.float64).sum(axis=1)
    assert (np.abs(sums - 1) <= sum_tol).all(), f"rows sum to {sums}"
    error = np.abs(x - exact).sum(axis=1)
    false = error > evidence["bound"] + ORACLE_SLACK
    assert not false.any(), f"rows {np.flatnonzero(false)}: error {error[false]} > bound {evidence['bound'][false]}"
    if residual is not None:
        low = evidence["residual"] < np.asarray(residual) * (1 - 1e-6) - ORACLE_SLACK
        assert not low.any(), f"rows {np.flatnonzero(low)}: residual {evidence['residual'][low]} is understated"
    if tol is not None:
        assert_bitwise(evidence["converged"], evidence["bound"] <= tol, "converged")


def assert_ppr_hits(hits: Any, x_exact: Any) -> None:
    """Check that scores are within their bounds, and that proven rows have the exact ids in order.

    Parameters
    ----------
    x_exact : (B, N) float64
        Exact scores; -inf where a node may not be returned. Nodes that differ by less than the
        oracle's own rounding may stand in either order.
    """
    exact = np.asarray(x_exact, np.float64)
    assert_hits_wellformed(hits)
    bounds = np.asarray(hits.score_bounds, np.float64)
    for b, n in enumerate(hits.counts):
        ids, scores = hits.ids[b, :n], np.asarray(hits.scores[b, :n], np.float64)
        assert _finite_and_at_least_0(bounds[b, :n]), f"row {b}: bounds {bounds[b, :n]}"
        assert (scores > 0).all(), f"row {b}: a graph list holds only scores above 0"
        error = np.abs(scores - exact[b, ids])
        assert (error <= bounds[b, :n] + ORACLE_SLACK).all(), f"row {b}: error {error} > bound {bounds[b, :n]}"
        if hits.proven[b]:
            best = np.sort(exact[b][exact[b] > 0])[::-1][: hits.ids.shape[1]]
            assert best.size == n, f"row {b}: {n} proven hits, the exact list has {best.size}"
            assert (np.abs(best - exact[b, ids]) <= ORACLE_SLACK).all(), f"row {b}: not the exact order: {ids}"


def _check_row(b: int, ids: NDArray[Any], scores: NDArray[Any], n: int) -> None:
    assert (ids[n:] == PAD_ID).all(), f"row {b}: padding ids are {ids[n:]}"
    assert np.isneginf(scores[n:]).all(), f"row {b}: padding scores are {scores[n:]}"
    ids, scores = ids[:n], scores[:n]
    assert (ids >= 0).all(), f"row {b}: a valid id is negative: {ids}"
    assert np.isfinite(scores).all(), f"row {b}: scores are not finite: {scores}"
    assert np.unique(ids).size == n, f"row {b}: an id is repeated: {ids}"
    falls = scores[:-1] > scores[1:]
    tied = (scores[:-1] == scores[1:]) & (ids[:-1] < ids[1:])
    assert (falls | tied).all(), f"row {b} breaks the total order at {np.flatnonzero(~(falls | tied))}"


def _check_scores(b: int, scores: NDArray[Any], exact: NDArray[np.float64], tol: NDArray[np.float64]) -> None:
    assert np.isfinite(exact).all(), f"row {b}: returned an id that is no candidate"
    error = np.abs(scores.astype(np.float64) - exact)
    assert (error <= tol).all(), f"row {b}: scores are off by up to {error.max()}, tolerance {tol.max()}"


def _check_none_left_out(b: int, ids: NDArray[Any], exact: NDArray[np.float64], may_miss_below: float) -> None:
    missed = np.setdiff1d(np.flatnonzero(np.isfinite(exact) & (exact > may_miss_below)), ids)
    assert missed.size == 0, f"row {b} is short, but candidates {missed[:5]} were left out"


def _check_none_better(b: int, ids: NDArray[Any], exact: NDArray[np.float64], tol: NDArray[np.float64]) -> None:
    if ids.size:
        last = ids[-1]
        better = np.setdiff1d(np.flatnonzero(exact > exact[last] + tol + tol[last]), ids)
        assert better.size == 0, f"row {b}: left-out ids {better[:5]} beat the last hit"


def _finite_and_at_least_0(values: NDArray[Any]) -> bool:
    return bool((np.isfinite(values) & (values >= 0)).all())


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize)


def _has_nan(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())
