"""The numbers of an evaluation: frozen, and plain enough for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .bootstrap import bootstrap_interval
from .comparison import Comparison
from .wilson import wilson_interval

T = TypeVar("T")
_NO_BASELINE = "no baseline was named; evaluate with baseline=<one of the runs>"


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
        95 % interval: Wilson's for a metric whose values are 0 or 1, else by bootstrap; None for n = 0.
    """

    mean: float
    n: int
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form; the mean of no queries is None."""
        return {**asdict(self), "mean": None if isnan(self.mean) else self.mean}


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
    ids : tuple of str, B entries
        The queries.
    per_query : mapping of run to mapping of metric to ndarray of float64, shape (B,)
        Read-only; NaN where a query is not judged by the metric.
    num_without_last_hop : int
        Queries that last-hop metrics leave out.
    """

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str | None
    groups: tuple[Group, ...]
    ids: tuple[str, ...]
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
        """A run against the baseline under a metric.

        Raises
        ------
        InputError
            A run, metric or group that was not compared, or no baseline was named.
        """
        if self.baseline is None:
            raise InputError(_NO_BASELINE)
        return _pick(self.group(group).comparisons, run, metric)

    def wins(self, run: str, metric: str) -> tuple[str, ...]:
        """Queries for which a run has a higher value than the baseline, in order.

        With a graph run against a dense baseline these are the graph wins.

        Raises
        ------
        InputError
            A run or metric that was not evaluated, or no baseline was named.
        """
        return self._where(self._difference(run, metric) > 0)

    def losses(self, run: str, metric: str) -> tuple[str, ...]:
        """Queries for which a run has a lower value than the baseline, in order.

        Errors are those of :meth:`wins`.
        """
        return self._where(self._difference(run, metric) < 0)

    def _difference(self, run: str, metric: str) -> NDArray[np.float64]:
        if self.baseline is None:
            raise InputError(_NO_BASELINE)
        return _pick(self.per_query, run, metric) - self.per_query[self.baseline][metric]

    def _where(self, rows: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(self.ids[row] for row in np.flatnonzero(rows).tolist())

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """A JSON-serialisable form.

        Parameters
        ----------
        per_query : bool
            Add each query's values (None where a metric does not judge it), and the queries won and lost.
        """
        made: dict[str, Any] = {
            "runs": list(self.runs),
            "metrics": list(self.metrics),
            "baseline": self.baseline,
            "queries_without_last_hop": self.num_without_last_hop,
            "groups": [group.to_dict() for group in self.groups],
        }
        if per_query:
            made["per_query"] = {
                "ids": list(self.ids),
                "values": {run: {m: _or_none(row[m]) for m in self.metrics} for run, row in self.per_query.items()},
            }
            if self.baseline is not None:
                others = [run for run in self.runs if run != self.baseline]
                made["won"] = {run: {m: list(self.wins(run, m)) for m in self.metrics} for run in others}
                made["lost"] = {run: {m: list(self.losses(run, m)) for m in self.metrics} for run in others}
        return made

    def __repr__(self) -> str:
        groups = [group.label for group in self.groups]
        return f"Evaluation(runs={list(self.runs)}, metrics={list(self.metrics)}, groups={groups})"


def summarise(values: NDArray[np.float64], *, binary: bool) -> Estimate:
    """Mean of the values that are defined, with its 95 % interval.

    Parameters
    ----------
    values : ndarray of float64, shape (B,)
        NaN entries are left out.
    binary : bool
        True where the values are 0 or 1: Wilson's interval, else the bootstrap's.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import summarise
    >>> summarise(np.array([1.0, 0.5, np.nan]), binary=False)
    Estimate(mean=0.75, n=2, low=0.5, high=1.0)
    """
    defined = values[~np.isnan(values)]
    if defined.size == 0:
        return Estimate(float("nan"), 0)
    interval = wilson_interval(int(defined.sum()), defined.size) if binary else bootstrap_interval(defined)
    return Estimate(float(defined.mean()), defined.size, *interval)


def _or_none(values: NDArray[np.float64]) -> list[float | None]:
    return [None if isnan(value) else value for value in values.tolist()]


def _pick(table: Mapping[str, Mapping[str, T]], run: str, metric: str) -> T:
    if run not in table or metric not in table[run]:
        known = "; ".join(f"{name}: {', '.join(row)}" for name, row in table.items())
        raise InputError(f"there is no number for run {run!r} and metric {metric!r}; there are {known}")
    return table[run][metric]


def _nested(table: Mapping[str, Mapping[str, Estimate]] | Mapping[str, Mapping[str, Comparison]]) -> dict[str, Any]:
    return {run: {metric: value.to_dict() for metric, value in row.items()} for run, row in table.items()}
