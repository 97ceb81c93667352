"""Curves for reports: the metric of a sweep as a function of its options, and distributions of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_shape, check_some, check_whole
from ..errors import InputError
from ..fusion.calibration import CalibrationName
from ..types import Hits
from .evaluation import Estimate
from .metrics import relevance
from .qrels import Qrels
from .runs import Run
from .significance import wilson_interval
from .sweep import Options, Sweep, Trial, as_number, is_number, shown_options


@dataclass(frozen=True)
class Curve:
    """Trials on the tune half that differ only in one option.

    Attributes
    ----------
    label : str
        The option ``method``, or ``""`` if the sweep has none.
    others : mapping of str to value
        The options that all the trials share.
    points : tuple of (float, Estimate)
        Values of the option and the metric there, in ascending order.
    """

    label: str
    others: Options
    points: tuple[tuple[float, Estimate], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form, if the options' values are."""
        points = [{"value": as_number(value), **estimate.to_dict()} for value, estimate in self.points]
        return {"label": self.label, "options": shown_options(self.others), "points": points}


def option_curves(sweep: Sweep) -> dict[str, tuple[Curve, ...]]:
    """Return a curve of the metric for each numeric option and each method.

    A method has the other options of its best trial, so the curve passes through that trial. All points are on the tune
    half, where the best one is optimistic because it was chosen there.

    Parameters
    ----------
    sweep : Sweep
        Trials may have an option "method", and need not all have the same options.

    Returns
    -------
    dict of str to tuple of Curve
        The method with the best trial first; methods with fewer than two values of the option are left out.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, option_curves, sweep
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> result = sweep(run, qrels, {"good": [2, 8, 5]}, baseline={"good": 1}, metric="hit@1")
    >>> [value for value, _ in option_curves(result)["good"][0].points]
    [1, 2, 5, 8]
    """
    best: dict[str, Trial] = {}
    for trial in sorted(sweep.tune, key=lambda trial: -trial.estimate.mean):
        best.setdefault(_method(trial.options), trial)
    names = dict.fromkeys(name for trial in sweep.tune for name in trial.options)
    made = {name: tuple(_curve(sweep, name, trial) for trial in best.values()) for name in names}
    kept = {name: tuple(c for c in curves if len(c.points) > 1) for name, curves in made.items()}
    return {name: curves for name, curves in kept.items() if curves}


def _curve(sweep: Sweep, name: str, best: Trial) -> Curve:
    others = _without(best.options, name)
    points = [
        (as_number(trial.options[name]), trial.estimate)
        for trial in sweep.tune
        if is_number(trial.options.get(name)) and _without(trial.options, name) == others
    ]
    return Curve(_method(others), others, tuple(sorted(points, key=lambda point: point[0])))


def _method(options: Options) -> str:
    """Return the name of a trial's fusion method, as it is shown; empty if it has none."""
    return str(shown_options(options).get("method", ""))


def _without(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {option: value for option, value in options.items() if option != name}


@dataclass(frozen=True, eq=False, init=False)
class Grid:
    """Values on a grid of two parameters.

    Parameters
    ----------
    x, y : array_like of float, shapes (X,) and (Y,)
        Values of the parameters, at least one each, strictly increasing.
    values : array_like of float, shape (Y, X)
        ``values[i, j]`` is at ``y[i]`` and ``x[j]``; NaN if there is none.
    x_label, y_label, label : str
        Names of x, y and the values.

    Raises
    ------
    InputError
        The shape is wrong, parameters do not increase, or values are infinite or all NaN.

    Examples
    --------
    >>> from hopfuse.evaluate import Grid
    >>> Grid([0.5, 1.0, 2.0], [0.0, 1.0], [[0.1, 0.1, 0.1], [0.9, 0.6, 0.1]], "temperature", "coupling", "mean |m|")
    Grid(mean |m| over 3 temperature x 2 coupling)
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    values: NDArray[np.float64]
    x_label: str
    y_label: str
    label: str

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        values: ArrayLike,
        x_label: str = "x",
        y_label: str = "y",
        label: str = "value",
    ) -> None:
        axes = {"x": np.array(x, np.float64), "y": np.array(y, np.float64)}
        for name, axis in axes.items():
            if axis.ndim != 1 or not axis.size or not np.isfinite(axis).all() or not (np.diff(axis) > 0).all():
                raise InputError(
                    "order",
                    name,
                    "{field} is {given}; give one or more finite numbers in increasing order",
                    given=axis.tolist(),
                )
        cells = np.array(values, np.float64)
        shape = (axes["y"].size, axes["x"].size)
        check_shape(cells.shape, "values", shape, reason="a row for each y, a column for each x")
        if np.isinf(cells).any() or np.isnan(cells).all():
            raise InputError(
                "finite",
                "values",
                "{field} has an infinite number, or only NaN; give finite numbers, and NaN where there is none",
            )
        arrays = {**axes, "values": cells}
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for name, word in (("x_label", x_label), ("y_label", y_label), ("label", label)):
            object.__setattr__(self, name, str(word))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form; NaN is None."""
        rows = [[None if np.isnan(v) else v for v in row] for row in self.values.tolist()]
        labels = {name: getattr(self, name) for name in ("x_label", "y_label", "label")}
        return {"x": self.x.tolist(), "y": self.y.tolist(), "values": rows, **labels}

    def __repr__(self) -> str:
        return f"Grid({self.label} over {self.x.size} {self.x_label} x {self.y.size} {self.y_label})"


def sweep_grid(sweep: Sweep, x: str, y: str) -> Grid:
    """Return a grid of a sweep's metric over two of its options: the mean on the tune half, in [0, 1].

    If trials at one place of the grid differ in other options, the best of them is shown.

    Parameters
    ----------
    sweep : Sweep
    x, y : str
        Numeric options; trials that lack one of them are left out.

    Raises
    ------
    InputError
        No trial has both options as numbers.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, sweep, sweep_grid
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     good = rows % 10 < options["coupling"] / options["temperature"]
    ...     return hf.Hits(np.where(good, rows, rows + 100)[:, None], np.ones((rows.size, 1)))
    >>> grid = {"temperature": [1.0, 2.0], "coupling": [0.0, 20.0]}
    >>> result = sweep(run, qrels, grid, baseline={"coupling": 0.0, "temperature": 1.0}, metric="hit@1")
    >>> sweep_grid(result, "temperature", "coupling").values
    array([[0., 0.],
           [1., 1.]])
    """
    best: dict[tuple[float, float], float] = {}
    for trial in sweep.tune:
        at, up = trial.options.get(x), trial.options.get(y)
        if is_number(at) and is_number(up):
            best[at, up] = max(trial.estimate.mean, best.get((at, up), -np.inf))
    if not best:
        raise InputError(
            "unknown",
            "x",
            "{field} is {given!r} beside {@y}{y!r}, and no trial of the sweep has numbers for both; its options are "
            "{allowed}",
            given=x,
            y=y,
            allowed=_options(sweep),
        )
    across, along = (np.unique([pair[axis] for pair in best]) for axis in (0, 1))
    values = [[best.get((a, b), np.nan) for a in across.tolist()] for b in along.tolist()]
    return Grid(across, along, values, x, y, sweep.metric)


def _options(sweep: Sweep) -> str:
    names: Sequence[str] = list(dict.fromkeys(name for trial in sweep.tune for name in trial.options))
    return ", ".join(names) or "none"


# ---- Distributions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """Scores of all queries' hits, in bins of equal width.

    Attributes
    ----------
    edges : ndarray of float64, shape (bins + 1,)
        From the lowest score to the highest; to a higher value if all are equal, and 0 .. 1 if there are none.
    relevant, other : ndarray of int64, shape (bins,)
        Number of hits that are gold passages, and of the others.
    relevant_median, other_median : float or None
        None if there is no such hit.
    auc : float or None
        Area under the ROC curve: the probability that a relevant hit scores above another hit, of any query; equal
        scores count half. None if either kind is absent.
    """

    edges: NDArray[np.float64]
    relevant: NDArray[np.int64]
    other: NDArray[np.int64]
    relevant_median: float | None
    other_median: float | None
    auc: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        arrays = {name: getattr(self, name).tolist() for name in ("edges", "relevant", "other")}
        return {**arrays, **{name: getattr(self, name) for name in ("relevant_median", "other_median", "auc")}}


def score_distribution(hits: Hits, qrels: Qrels, *, bins: int = 25) -> ScoreDistribution:
    """Bin the scores of relevant hits and of the others.

    Parameters
    ----------
    hits : Hits
        B rows on the host.
    qrels : Qrels
        Judgements of the same B queries; unjudged passages count as not relevant.
    bins : int
        At least 1.

    Raises
    ------
    InputError
        The numbers of queries differ, bins is below 1, or hits are on a device.

    References
    ----------
    AUC as the Mann-Whitney statistic: Hanley & McNeil, Radiology 143 (1982).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, score_distribution
    >>> hits = hf.Hits([[4, 7], [2, 3]], [[0.75, 0.25], [0.5, 0.25]])
    >>> found = score_distribution(hits, Qrels(["a", "b"], gold=[[4], [3]]), bins=2)
    >>> found.relevant, found.other, found.auc
    (array([1, 1]), array([1, 1]), 0.625)
    """
    scores, relevant = _scored(hits, qrels, bins)
    right, wrong = scores[relevant], scores[~relevant]
    low, high = (float(scores.min()), float(scores.max())) if scores.size else (0.0, 1.0)
    # The width is relative for large scores, so that edges stay distinct in floating point.
    edges = np.linspace(low, high if high > low else low + max(1.0, 0.01 * abs(low)), bins + 1)
    relevant_counts, other_counts = (np.histogram(part, edges)[0].astype(np.int64) for part in (right, wrong))
    medians = _median(right), _median(wrong)
    return ScoreDistribution(edges, relevant_counts, other_counts, *medians, _auc(right, wrong))


def score_distributions(
    qrels: Qrels, runs: Mapping[str, Run], calibration: CalibrationName = "pit"
) -> dict[str, dict[str, ScoreDistribution]]:
    """Return the distributions of each run's scores, raw and calibrated query by query.

    Parameters
    ----------
    qrels : Qrels
    runs : mapping of str to Run
    calibration : str
        A method of :func:`hopfuse.calibrate`.

    Returns
    -------
    dict of str to dict
        By run, then by ``"raw"`` or the name of the calibration.

    Raises
    ------
    InputError
        A run has another number of queries, or scores that the calibration does not allow; the error names the run.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, Run, score_distributions
    >>> runs = {"dense": Run(hf.Hits([[4, 7]], [[3.0, 2.0]]))}
    >>> found = score_distributions(Qrels(["a"], gold=[[4]]), runs, "min_max")
    >>> found["dense"]["raw"].relevant_median, found["dense"]["min_max"].relevant_median
    (3.0, 1.0)
    """
    from ..ops.calibration import calibrate  # loads the kernels, which other evaluations do not need

    found = {}
    for name, run in runs.items():
        try:
            after = calibrate(run.hits, calibration)
            found[name] = {"raw": score_distribution(run.hits, qrels), calibration: score_distribution(after, qrels)}
        except InputError as error:
            raise error.at(f"run {name!r}") from None
    return found


def _scored(hits: Hits, qrels: Qrels, bins: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the scores of all hits of all queries, and whether each is relevant."""
    check_whole(bins, "bins")
    relevant = relevance(hits, qrels.gold_pairs)
    valid = np.arange(hits.shape[1]) < hits.counts[:, None]
    return np.asarray(hits.scores, np.float64)[valid], relevant[valid]


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if values.size else None


def _auc(right: NDArray[np.float64], wrong: NDArray[np.float64]) -> float | None:
    if not (right.size and wrong.size):
        return None
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, "left") + np.searchsorted(ordered, right, "right")
    return float(below.mean() / 2 / wrong.size)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Share of relevant documents by score, in bins of equal width over [0, 1].

    Attributes
    ----------
    edges : ndarray of float64, shape (bins + 1,)
    counts : ndarray of int64, shape (bins,)
        Documents in each bin; the last bin includes a score of 1.
    mean_score, relevant_share : ndarray of float64, shape (bins,)
        NaN for an empty bin.
    low, high : ndarray of float64, shape (bins,)
        Wilson 95 % interval of the share; NaN for an empty bin.
    expected_error : float
        Mean of \\|share - mean score\\| over the documents: the expected calibration error. It is meaningful for scores
        that are probabilities, not for percentile ranks.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    mean_score: NDArray[np.float64]
    relevant_share: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    expected_error: float

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form; NaN becomes None."""
        fields = ("mean_score", "relevant_share", "low", "high")
        bins = {name: [None if np.isnan(x) else float(x) for x in getattr(self, name)] for name in fields}
        known = {"edges": self.edges.tolist(), "counts": self.counts.tolist(), **bins}
        return {**known, "expected_error": self.expected_error}


def reliability(hits: Hits, qrels: Qrels, *, bins: int = 10) -> Reliability:
    """Measure how often documents with a given score are relevant.

    Parameters
    ----------
    hits : Hits
        Scores in [0, 1]: from a :class:`hopfuse.Calibrator` or :func:`hopfuse.calibrate`, or probabilities.
    qrels : Qrels
        Judgements of the same queries; unjudged passages count as not relevant.
    bins : int
        At least 1.

    Raises
    ------
    InputError
        Scores are outside [0, 1], the numbers of queries differ, there is no document, bins is below 1, or hits are on
        a device.

    References
    ----------
    DeGroot & Fienberg, The Statistician 32 (1983); expected calibration error: Naeini, Cooper & Hauskrecht, AAAI 2015.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, reliability
    >>> hits = hf.Hits([[4, 7], [2, 3]], [[0.9, 0.2], [0.8, 0.3]])
    >>> found = reliability(hits, Qrels(["a", "b"], gold=[[4], [3]]), bins=2)
    >>> found.counts, found.relevant_share
    (array([2, 2]), array([0.5, 0.5]))
    """
    scores, relevant = _scored(hits, qrels, bins)
    check_some(scores, "hits", "document")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(
            "range",
            "hits",
            "{field} has scores from {low:g} to {high:g}; they must be in [0, 1]: calibrate them first, such as with "
            "Calibrator().fit(sample).transform",
            low=scores.min(),
            high=scores.max(),
        )
    at = np.minimum((scores * bins).astype(np.int64), bins - 1)
    counts = np.bincount(at, minlength=bins)
    hit = np.bincount(at, relevant.astype(np.float64), minlength=bins)
    with np.errstate(invalid="ignore"):
        mean, share = np.bincount(at, scores, minlength=bins) / counts, hit / counts
    empty = (float("nan"), float("nan"))
    intervals = [wilson_interval(int(s), int(n)) if n else empty for s, n in zip(hit, counts, strict=True)]
    low, high = np.array(intervals).T
    error = float(np.nansum(np.abs(share - mean) * counts) / scores.size)
    return Reliability(np.linspace(0.0, 1.0, bins + 1), counts.astype(np.int64), mean, share, low, high, error)
