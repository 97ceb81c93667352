"""Whether a score means what it says: the share of relevant documents, by score."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, MissingExtraError
from ..types import Hits
from .qrels import Qrels
from .relevance import relevance
from .wilson import wilson_interval


@dataclass(frozen=True, eq=False)
class Reliability:
    """Documents by score, in bins of equal width over [0, 1].

    Attributes
    ----------
    edges : ndarray of float64, shape (bins + 1,)
    counts : ndarray of int64, shape (bins,)
        Documents in each bin; the last one holds a score of 1 too.
    mean_score : ndarray of float64, shape (bins,)
        NaN where a bin is empty, as below.
    relevant_share : ndarray of float64, shape (bins,)
    low, high : ndarray of float64, shape (bins,)
        Wilson 95 % interval of the share.
    expected_error : float
        Mean of \\|share - mean score\\| over the documents: the expected calibration error. It says something of scores
        that are meant as probabilities; percentile ranks are not.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    mean_score: NDArray[np.float64]
    relevant_share: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    expected_error: float

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form; what an empty bin lacks is None."""
        fields = ("mean_score", "relevant_share", "low", "high")
        bins = {name: [None if np.isnan(x) else float(x) for x in getattr(self, name)] for name in fields}
        known = {"edges": self.edges.tolist(), "counts": self.counts.tolist(), **bins}
        return {**known, "expected_error": self.expected_error}

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the share of relevant documents against the score, with intervals and counts, into an image file.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise MissingExtraError("matplotlib", "plots", "drawing a reliability plot") from error
        figure = Figure(figsize=(5, 5.5), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        held = self.counts > 0
        share, score = self.relevant_share[held], self.mean_score[held]
        spread = np.maximum([share - self.low[held], self.high[held] - share], 0.0)
        top.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="score = share")
        top.errorbar(score, share, yerr=spread, marker="o", capsize=3, label="documents, 95 % interval")
        top.set(ylabel="share relevant", xlim=(0, 1), ylim=(0, 1))
        top.legend(loc="upper left")
        bottom.bar(self.edges[:-1], self.counts, width=np.diff(self.edges), align="edge", color="0.6")
        bottom.set(xlabel="score", ylabel="documents")
        figure.savefig(path)


def reliability(hits: Hits, qrels: Qrels, *, bins: int = 10) -> Reliability:
    """How often documents of a score are relevant.

    Parameters
    ----------
    hits : Hits
        Scores in [0, 1]: of a :class:`hopfuse.Calibrator`, of :func:`hopfuse.calibrate`, or probabilities.
    qrels : Qrels
        Judgements, a row for each query; what is not judged counts as not relevant.
    bins : int
        At least 1.

    Raises
    ------
    InputError
        A score outside [0, 1], another number of queries, no document at all, bins below 1, hits on a device.

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
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins is {bins!r}; it must be a whole number, at least 1")
    relevant = relevance(hits, qrels.gold_pairs)
    valid = np.arange(hits.shape[1]) < hits.counts[:, None]
    scores = hits.scores[valid].astype(np.float64)
    if scores.size == 0:
        raise InputError("hits hold no document; give the lists that were calibrated")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise InputError(
            f"scores lie in {scores.min():g} .. {scores.max():g}; they must be in 0 .. 1: calibrate them first, "
            "e.g. with Calibrator.transform"
        )
    return _binned(scores, relevant[valid], bins)


def _binned(scores: NDArray[np.float64], relevant: ArrayLike, bins: int) -> Reliability:
    at = np.minimum((scores * bins).astype(np.int64), bins - 1)
    counts = np.bincount(at, minlength=bins)
    hit = np.bincount(at, np.asarray(relevant, np.float64), minlength=bins)
    with np.errstate(invalid="ignore"):
        mean, share = np.bincount(at, scores, minlength=bins) / counts, hit / counts
    nothing = (float("nan"), float("nan"))
    intervals = [wilson_interval(int(s), int(n)) if n else nothing for s, n in zip(hit, counts, strict=True)]
    low, high = np.array(intervals).T
    error = float(np.nansum(np.abs(share - mean) * counts) / scores.size)
    return Reliability(np.linspace(0.0, 1.0, bins + 1), counts.astype(np.int64), mean, share, low, high, error)
