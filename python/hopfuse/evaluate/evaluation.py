"""The numbers of an evaluation: frozen, and plain enough for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .statistics import mcnemar_exact, wilson_interval

T = TypeVar("T")


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over a group of queries.

    Attributes
    ----------
    mean : float
        NaN where n is 0.
    n : int
        Queries for which the metric is defined.
    low, high : float or None
        Wilson 95 % interval of a metric whose values are 0 or 1; None for other metrics and for n = 0.
    """

    mean: float
    n: int
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form; the mean of no queries is None."""
        return {**asdict(self), "mean": None if isnan(self.mean) else self.mean}


@dataclass(frozen=True)
class Comparison:
    """One run against the baseline, query by query, under a metric whose values are 0 or 1.

    Attributes
    ----------
    n : int
        Queries for which the metric is defined.
    wins, losses : int
        Queries that only the run hits, and that only the baseline hits. With a graph run against a
        dense baseline these are the graph wins and the graph losses.
    both, neither : int
        Queries that both hit, and that neither hits.
    p_value : float
        Exact two-sided McNemar test.
    """

    n: int
    wins: int
    losses: int
    both: int
    neither: int
    p_value: float

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form."""
        return asdict(self)


@dataclass(frozen=True)
class Group:
    """All the numbers of one group of queries.

    Attributes
    ----------
    label : str
        ``"all"``, ``"1 hop"``, ``"2 hops"``, ..., or ``"hops unknown"``.
    queries : int
    estimates : mapping of run to mapping of metric to Estimate
    comparisons : mapping of run to mapping of metric to Comparison
        Empty where no baseline was named.
    """

    label: str
    queries: int
    estimates: Mapping[str, Mapping[str, Estimate]]
    comparisons: Mapping[str, Mapping[str, Comparison]]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form."""
        return {
            "group": self.label,
            "queries": self.queries,
            "estimates": _nested(self.estimates),
            "comparisons": _nested(self.comparisons),
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What :func:`hopfuse.evaluate.evaluate` returns.

    Attributes
    ----------
    runs, metrics : tuple of str
        In the order in which they were given.
    baseline : str or None
    groups : tuple of Group
        All queries first, then one group per number of hops.
    per_query : mapping of run to mapping of metric to ndarray of float64, shape (B,)
        Read-only; NaN where a query is not judged by the metric.
    num_without_last_hop : int
        Queries that last-hop metrics leave out.
    """

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str | None
    groups: tuple[Group, ...]
    per_query: Mapping[str, Mapping[str, NDArray[np.float64]]]
    num_without_last_hop: int

    def group(self, label: str = "all") -> Group:
        """The numbers of one group of queries.

        Raises
        ------
        InputError
            A label that no group has.
        """
        for group in self.groups:
            if group.label == label:
                return group
        raise InputError(f"group is {label!r}; there are: {', '.join(g.label for g in self.groups)}")

    def estimate(self, run: str, metric: str, *, group: str = "all") -> Estimate:
        """The mean of a metric for a run.

        Raises
        ------
        InputError
            A run, metric or group that was not evaluated.
        """
        return _pick(self.group(group).estimates, run, metric)

    def comparison(self, run: str, metric: str, *, group: str = "all") -> Comparison:
        """A run against the baseline under a metric whose values are 0 or 1.

        Raises
        ------
        InputError
            A run, metric or group that was not compared, or no baseline was named.
        """
        if self.baseline is None:
            raise InputError("no baseline was named; evaluate with baseline=<one of the runs>")
        return _pick(self.group(group).comparisons, run, metric)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form, without the values per query."""
        return {
            "runs": list(self.runs),
            "metrics": list(self.metrics),
            "baseline": self.baseline,
            "queries_without_last_hop": self.num_without_last_hop,
            "groups": [group.to_dict() for group in self.groups],
        }

    def __repr__(self) -> str:
        groups = [group.label for group in self.groups]
        return f"Evaluation(runs={list(self.runs)}, metrics={list(self.metrics)}, groups={groups})"


def summarise(values: NDArray[np.float64], *, binary: bool) -> Estimate:
    """Mean of the values that are defined, with a Wilson interval where they are 0 or 1.

    Parameters
    ----------
    values : ndarray of float64, shape (B,)
        NaN entries are left out.
    binary : bool
        True where the values are 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import summarise
    >>> summarise(np.array([1.0, 0.5, np.nan]), binary=False)
    Estimate(mean=0.75, n=2, low=None, high=None)
    """
    defined = values[~np.isnan(values)]
    if defined.size == 0:
        return Estimate(float("nan"), 0)
    interval = wilson_interval(int(defined.sum()), defined.size) if binary else (None, None)
    return Estimate(float(defined.mean()), defined.size, *interval)


def compare(values: NDArray[np.float64], baseline: NDArray[np.float64]) -> Comparison:
    """Paired comparison of two runs under one metric whose values are 0 or 1.

    Parameters
    ----------
    values, baseline : ndarray of float64, shape (B,)
        0, 1 or NaN for each query; a query that is NaN in either is left out.

    Raises
    ------
    InputError
        Shapes that differ, values other than 0, 1 and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import compare
    >>> compare(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    Comparison(n=3, wins=1, losses=0, both=1, neither=1, p_value=1.0)
    """
    if values.shape != baseline.shape:
        raise InputError(f"values have shape {values.shape} and the baseline {baseline.shape}; both are per query")
    defined = ~(np.isnan(values) | np.isnan(baseline))
    ours, theirs = values[defined], baseline[defined]
    if not (np.isin(ours, (0, 1)).all() and np.isin(theirs, (0, 1)).all()):
        raise InputError("McNemar's test compares values of 0 and 1, such as those of hit@k; others were given")
    wins, losses = int((ours > theirs).sum()), int((ours < theirs).sum())
    both = int((ours * theirs).sum())
    return Comparison(ours.size, wins, losses, both, ours.size - wins - losses - both, mcnemar_exact(wins, losses))


def _pick(table: Mapping[str, Mapping[str, T]], run: str, metric: str) -> T:
    if run not in table or metric not in table[run]:
        known = "; ".join(f"{name}: {', '.join(row)}" for name, row in table.items())
        raise InputError(f"there is no number for run {run!r} and metric {metric!r}; there are {known}")
    return table[run][metric]


def _nested(table: Mapping[str, Mapping[str, Estimate]] | Mapping[str, Mapping[str, Comparison]]) -> dict[str, Any]:
    return {run: {metric: value.to_dict() for metric, value in row.items()} for run, row in table.items()}
