"""Compare two runs on the same queries under one metric."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_shape
from ..errors import InputError
from .significance import (
    bootstrap_interval,
    detectable_difference,
    detectable_mean_difference,
    discordant_odds_ratio,
    mcnemar_exact,
    randomisation_test,
)


@dataclass(frozen=True)
class Comparison:
    """A run compared with the baseline, query by query.

    Attributes
    ----------
    n : int
        Queries for which the metric is defined.
    wins, losses : int
        Queries for which the run's value is higher, and lower.
    ties : int
        Queries with the same value.
    difference : float
        Mean value of the run minus that of the baseline; NaN if n is 0.
    low, high : float or None
        Paired bootstrap 95 % interval of the difference; None if n is 0.
    deviation : float
        Standard deviation of the differences per query (n - 1 degrees of freedom); 0 for n below 2.
    p_value : float
        Two-sided: of the exact McNemar test if values are 0 or 1, else of the paired randomisation test.
    p_holm : float
        p_value after Holm's correction over the runs that :func:`evaluate` compares under this metric.
    both, neither : int or None
        The ties at 1 and at 0; None if values are not 0 or 1.
    odds_ratio, odds_low, odds_high : float or None
        Odds ratio of the discordant queries with its exact 95 % interval; None if values are not 0 or 1.
    """

    n: int
    wins: int
    losses: int
    ties: int
    difference: float
    low: float | None
    high: float | None
    deviation: float
    p_value: float
    p_holm: float
    both: int | None = None
    neither: int | None = None
    odds_ratio: float | None = None
    odds_low: float | None = None
    odds_high: float | None = None

    def detectable(self, *, power: float = 0.8) -> float | None:
        """Return the smallest difference that a test of these queries detects at 5 %, with the given power.

        Parameters
        ----------
        power : float, in (0, 1)

        Returns
        -------
        float or None
            If values are 0 or 1, :func:`detectable_difference` at the observed share of discordant queries, else
            :func:`detectable_mean_difference` at the observed deviation; None if no difference is detectable.
        """
        if self.n == 0 or self.wins + self.losses == 0:
            return None
        if self.both is None:
            return detectable_mean_difference(self.n, self.deviation, power=power)
        return detectable_difference(self.n, (self.wins + self.losses) / self.n, power=power)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form, with ``detectable``; NaN and infinity become None."""
        finite = {k: v if v is None or isfinite(v) else None for k, v in asdict(self).items()}
        return {**finite, "detectable": self.detectable()}


def compare(values: NDArray[np.float64], baseline: NDArray[np.float64], *, binary: bool) -> Comparison:
    """Compare two runs, query by query, under one metric.

    Parameters
    ----------
    values, baseline : ndarray of float64, shape (B,)
        A value for each query; queries with NaN in either are left out.
    binary : bool
        True if the values are 0 or 1, for McNemar's test and the odds ratio of discordant queries.

    Raises
    ------
    InputError
        Shapes differ, or values are infinite; with ``binary``, values other than 0, 1 and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import compare
    >>> c = compare(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0]), binary=True)
    >>> c.wins, c.losses, c.both, c.neither, c.p_value
    (1, 0, 1, 1, 1.0)
    """
    check_shape(values.shape, "values", baseline.shape, reason="one number for each query, as baseline has")
    defined = ~(np.isnan(values) | np.isnan(baseline))
    ours, theirs = values[defined], baseline[defined]
    if binary and not (np.isin(ours, (0, 1)).all() and np.isin(theirs, (0, 1)).all()):
        raise InputError(
            "range",
            "values",
            "{field} has numbers other than 0 and 1, and binary=True needs these, as hit@k has; give binary=False",
        )
    if ours.size == 0:
        return Comparison(0, 0, 0, 0, float("nan"), None, None, 0.0, 1.0, 1.0)
    differences = ours - theirs
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    p = mcnemar_exact(wins, losses) if binary else randomisation_test(differences)
    common = (
        ours.size,
        wins,
        losses,
        ours.size - wins - losses,
        float(differences.mean()),
        *bootstrap_interval(differences),
        float(differences.std(ddof=1)) if ours.size > 1 else 0.0,
        p,
        p,
    )
    if not binary:
        return Comparison(*common)
    both = int((ours * theirs).sum())
    return Comparison(*common, both, ours.size - wins - losses - both, *discordant_odds_ratio(wins, losses))
