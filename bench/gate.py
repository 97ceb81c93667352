"""Correctness checks: each returns the largest error, or raises GateError."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import GateError


class Rankings(NamedTuple):
    """Ranked ids (B, k) and scores (B, k), best first; padding is id -1 and score -inf."""

    ids: NDArray[np.int64]
    scores: NDArray[Any]


def rows_l1(what: str, actual: NDArray[Any], expected: NDArray[Any], tolerance: float) -> float:
    """Check that scores are finite and differ by an L1 distance of at most ``tolerance`` in every row."""
    if actual.shape != expected.shape:
        raise GateError(f"{what}: shape {actual.shape}, expected {expected.shape}")
    if not np.isfinite(actual).all():
        raise GateError(f"{what}: a score is not finite")
    error = np.abs(actual.astype(np.float64) - expected).sum(axis=1)
    if not (error <= tolerance).all():
        raise GateError(f"{what}: row {int(error.argmax())} is off by {error.max():.3g} in L1, allowed {tolerance:.3g}")
    return float(error.max(initial=0.0))


def rankings(
    what: str,
    actual: Rankings,
    expected: Rankings,
    tie: NDArray[Any] | float,
    score_tolerance: NDArray[Any] | float,
) -> float:
    """Check that rankings have the same ids in the same order, except if expected scores differ by at most ``tie``.

    Scores must be within ``score_tolerance`` of the expected ones at each rank. Both are a number, or one per row.
    """
    if actual.ids.shape != expected.ids.shape or actual.scores.shape != expected.scores.shape:
        raise GateError(f"{what}: shape {actual.ids.shape}, expected {expected.ids.shape}")
    allowed, ties = (np.broadcast_to(np.asarray(t, np.float64), (len(actual.ids),)) for t in (score_tolerance, tie))
    worst = 0.0
    for row in range(len(actual.ids)):
        n = int((expected.ids[row] >= 0).sum())
        _same_order(f"{what}: row {row}", actual.ids[row], expected.ids[row], expected.scores[row], ties[row])
        error = float(np.abs(actual.scores[row, :n].astype(np.float64) - expected.scores[row, :n]).max(initial=0.0))
        if not error <= allowed[row]:
            raise GateError(f"{what}: row {row} has scores off by {error:.3g}, allowed {allowed[row]:.3g}")
        worst = max(worst, error)
    return worst


def _same_order(
    what: str, ids: NDArray[np.int64], expected: NDArray[np.int64], scores: NDArray[Any], tie: float
) -> None:
    n = int((expected >= 0).sum())
    found = ids[ids >= 0]
    if found.size != n or np.unique(found).size != n:
        raise GateError(f"{what}: {np.unique(found).size} distinct ids, expected {n}")
    place = {int(i): rank for rank, i in enumerate(expected[:n])}
    for rank in np.flatnonzero(ids[:n] != expected[:n]):
        other = place.get(int(ids[rank]), n - 1)
        if not abs(float(scores[rank]) - float(scores[other])) <= tie:
            raise GateError(f"{what}: rank {rank + 1} is id {ids[rank]}, expected {expected[rank]}")
