"""Medians, spreads and ratios of timings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Return the number, minimum, quartiles, 95th percentile and maximum of timings.

    Examples
    --------
    >>> summary([1.0, 3.0, 2.0])["median"]
    2.0
    """
    q1, median, q3, p95 = np.percentile(seconds, (25, 50, 75, 95))
    parts = {"min": min(seconds), "q1": q1, "median": median, "q3": q3, "p95": p95, "max": max(seconds)}
    return {"n": len(seconds), **{name: _rounded(value) for name, value in parts.items()}}


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the ratio of the peer's time to hopfuse's: of the medians, and the median over neighbouring pairs.

    Examples
    --------
    >>> ratios([1.0, 2.0, 1.0], [4.0, 8.0, 5.0])
    {'of_medians': 5.0, 'of_pairs': 4.0}
    """
    pairs = np.asarray(theirs) / np.asarray(ours)
    return {
        "of_medians": _rounded(np.median(theirs) / np.median(ours)),
        "of_pairs": _rounded(np.median(pairs)),
    }


def _rounded(value: float) -> float:
    return float(f"{float(value):.4g}")
