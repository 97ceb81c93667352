"""Distributions of the scores of relevant and other passages, and the calibration of scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_some, check_whole
from ..errors import InputError
from ..fusion.calibration import CalibrationName
from ..types import Hits
from .metrics import relevance
from .qrels import Qrels
from .runs import Run
from .significance import wilson_interval


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
