"""Which of a baseline's wrong passages a run no longer has."""

from __future__ import annotations

import numpy as np

from ..types import Hits
from .metrics import Values
from .qrels import Qrels
from .relevance import relevance


def distractor_suppression(hits: Hits, baseline: Hits, qrels: Qrels, k: int) -> Values:
    """Share of a question's distractors that are not among its first k hits.

    A distractor is a passage that is not gold and that the baseline, usually the dense leg, has among its own first k:
    text that looks like an answer and is none. The same k on both sides compares what a reader of k passages
    is given. Only the baseline's passages count, so that a run is not charged here for new ones: precision says how
    many wrong passages there are, this says what became of those that were there. It says nothing of gold passages,
    and an empty list suppresses all; read it beside recall at the same k.

    Parameters
    ----------
    hits, baseline : Hits
        B rows each, at least k wide (a row may hold fewer valid hits).
    qrels : Qrels
        Judgements of the same B queries.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query without gold passages, or where the baseline's first k are all gold.

    Raises
    ------
    InputError
        Another number of queries, k below 1 or above a width.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, distractor_suppression
    >>> dense = hf.Hits([[4, 1, 6]], [[0.9, 0.5, 0.1]])
    >>> fused = hf.Hits([[1, 6, 4]], [[0.9, 0.5, 0.1]])
    >>> distractor_suppression(fused, dense, Qrels(["a"], [[1]]), 2)
    array([1.])
    """
    relevance(hits, qrels.gold_pairs, k)  # refuses what no metric takes
    gold = relevance(baseline, qrels.gold_pairs, k)
    values = np.full(len(qrels), np.nan)
    for row in np.flatnonzero(qrels.gold_pairs.sizes > 0).tolist():
        first = baseline.row(row)[:k]
        wrong = {passage for (passage, _), right in zip(first, gold[row], strict=False) if not right}
        if wrong:
            kept = {passage for passage, _ in hits.row(row)[:k]}
            values[row] = len(wrong - kept) / len(wrong)
    return values
