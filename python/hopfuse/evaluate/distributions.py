"""How the scores of relevant documents lie among the others', before and after calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..fusion.calibration import CalibrationName
from ..types import Hits
from .qrels import Qrels
from .relevance import relevance
from .run import Run


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """Scores of all queries' hits, in bins of equal width.

    Attributes
    ----------
    edges : ndarray of float64, shape (bins + 1,)
        From the lowest score to the highest; to a higher value where all are equal, 0 .. 1 where there is none.
    relevant, other : ndarray of int64, shape (bins,)
        Hits with gold passages, and the others.
    relevant_median, other_median : float or None
        None where there is no such hit.
    auc : float or None
        Area under the ROC curve: the probability that the score of a relevant hit is above that of another
        one, of any query; equal scores count half. None where one of the two kinds is absent.
    """

    edges: NDArray[np.float64]
    relevant: NDArray[np.int64]
    other: NDArray[np.int64]
    relevant_median: float | None
    other_median: float | None
    auc: float | None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form."""
        arrays = {name: getattr(self, name).tolist() for name in ("edges", "relevant", "other")}
        return {**arrays, **{name: getattr(self, name) for name in ("relevant_median", "other_median", "auc")}}


def score_distribution(hits: Hits, qrels: Qrels, *, bins: int = 25) -> ScoreDistribution:
    """The scores of relevant hits and of the others.

    Parameters
    ----------
    hits : Hits
        B rows on the host.
    qrels : Qrels
        Judgements of the same B queries; what is not judged counts as not relevant.
    bins : int
        At least 1.

    Raises
    ------
    InputError
        Another number of queries, bins below 1, hits on a device.

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
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins is {bins!r}; it must be a whole number, at least 1")
    relevant = relevance(hits, qrels.gold_pairs)
    valid = np.arange(hits.shape[1]) < hits.counts[:, None]
    scores = np.asarray(hits.scores, np.float64)
    right, wrong = scores[relevant & valid], scores[valid & ~relevant]
    every = scores[valid]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    # One that is equal to many of its size would be lost in the sum: edges are distinct.
    edges = np.linspace(low, high if high > low else low + max(1.0, 0.01 * abs(low)), bins + 1)
    relevant_counts, other_counts = (np.histogram(part, edges)[0].astype(np.int64) for part in (right, wrong))
    medians = _median(right), _median(wrong)
    return ScoreDistribution(edges, relevant_counts, other_counts, *medians, _auc(right, wrong))


def score_distributions(
    runs: Mapping[str, Run], qrels: Qrels, calibration: CalibrationName = "pit"
) -> dict[str, dict[str, ScoreDistribution]]:
    """For each run the distribution of its scores as they are, and calibrated query by query.

    Parameters
    ----------
    runs : mapping of str to Run
    qrels : Qrels
    calibration : str
        A method of :func:`hopfuse.calibrate`.

    Returns
    -------
    dict of str to dict
        By run; then ``"raw"`` and the name of the calibration.

    Raises
    ------
    InputError
        A run with another number of queries, a calibration that its scores do not allow; names the run.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, Run, score_distributions
    >>> runs = {"dense": Run(hf.Hits([[4, 7]], [[3.0, 2.0]]))}
    >>> found = score_distributions(runs, Qrels(["a"], gold=[[4]]), "min_max")
    >>> found["dense"]["raw"].relevant_median, found["dense"]["min_max"].relevant_median
    (3.0, 1.0)
    """
    from ..ops.calibration import calibrate  # loads the kernels, which other evaluations do without

    found = {}
    for name, run in runs.items():
        try:
            after = calibrate(run.hits, calibration)
            found[name] = {"raw": score_distribution(run.hits, qrels), calibration: score_distribution(after, qrels)}
        except InputError as error:
            raise InputError(f"run {name!r}: {error}") from error
    return found


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if values.size else None


def _auc(right: NDArray[np.float64], wrong: NDArray[np.float64]) -> float | None:
    if not (right.size and wrong.size):
        return None
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, "left") + np.searchsorted(ordered, right, "right")
    return float(below.mean() / 2 / wrong.size)
