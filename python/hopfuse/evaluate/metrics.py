"""Ranking metrics, a value per query; NaN where a query has nothing to be judged by."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..types import Hits
from .qrels import JudgedPairs, Qrels
from .relevance import gains, relevance

Values = NDArray[np.float64]


def recall(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Share of a query's gold passages that are among its first k hits.

    Parameters
    ----------
    hits : Hits
        B rows, at least k wide (a row may hold fewer valid hits).
    qrels : Qrels
        Judgements of the same B queries, in the same order.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query without gold passages.

    Raises
    ------
    InputError
        Another number of queries, k below 1 or above the width of the hits.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, recall
    >>> recall(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 2)
    array([0.5])
    """
    found = relevance(hits, qrels.gold_pairs, k).sum(axis=1)
    return _where_judged(found / np.maximum(qrels.gold_pairs.sizes, 1), qrels.gold_pairs.sizes)


def hit(hits: Hits, qrels: Qrels, k: int) -> Values:
    """1 where at least one gold passage is among the first k hits, else 0.

    Parameters, returned shape and errors are those of :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, hit
    >>> hit(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 1)
    array([1.])
    """
    found = relevance(hits, qrels.gold_pairs, k).any(axis=1)
    return _where_judged(found, qrels.gold_pairs.sizes)


def full_support(hits: Hits, qrels: Qrels, k: int) -> Values:
    """1 where all gold passages are among the first k hits, else 0.

    Parameters, returned shape and errors are those of :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, full_support
    >>> full_support(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 3)
    array([1.])
    """
    found = relevance(hits, qrels.gold_pairs, k).sum(axis=1)
    return _where_judged(found == qrels.gold_pairs.sizes, qrels.gold_pairs.sizes)


def last_hop(hits: Hits, qrels: Qrels, k: int) -> Values:
    """1 where at least one passage of the last hop is among the first k hits, else 0.

    NaN for a query whose last hop is not known (:attr:`Qrels.num_without_last_hop` counts them).
    Parameters, returned shape and errors are those of :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, last_hop
    >>> q = Qrels(["a", "b"], gold=[[5, 8], [1]], last_hop=[[5], []])
    >>> last_hop(hf.Hits([[8, 2], [1, 3]], [[0.9, 0.5], [0.7, 0.1]]), q, 2)
    array([ 0., nan])
    """
    found = relevance(hits, qrels.last_hop_pairs, k).any(axis=1)
    return _where_judged(found, qrels.last_hop_pairs.sizes)


def reciprocal_rank(hits: Hits, qrels: Qrels, k: int | None = None) -> Values:
    """1 / rank of the first gold passage among the first k hits, 0 where there is none.

    Its mean over queries is the MRR. Without k, all the hits count. Parameters, returned shape and
    errors are otherwise those of :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, reciprocal_rank
    >>> reciprocal_rank(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[2]]))
    array([0.5])
    """
    relevant = relevance(hits, qrels.gold_pairs, k)
    if relevant.shape[1] == 0:
        return _where_judged(np.zeros(len(qrels)), qrels.gold_pairs.sizes)
    ranks = 1 / (1 + relevant.argmax(axis=1))
    return _where_judged(np.where(relevant.any(axis=1), ranks, 0.0), qrels.gold_pairs.sizes)


def ndcg(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Normalised discounted cumulative gain at k: a hit's gain is its grade, its discount 1 / log2(1 + rank).

    The ideal ranking has the gold passages of the highest grades at the top. Parameters, returned shape
    and errors are those of :func:`recall`.

    References
    ----------
    Järvelin and Kekäläinen, ACM TOIS 20 (2002).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, ndcg
    >>> ndcg(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 3).round(3)
    array([0.92])
    """
    judged = qrels.gold_pairs
    gain = gains(hits, judged, k)
    discount = 1 / np.log2(np.arange(2, k + 2))
    # One running sum for both sides, so that a perfect ranking is exactly 1.
    reached = np.cumsum(gain * discount, axis=1)[:, -1]
    best = np.cumsum(_ideal_gains(judged, k) * discount, axis=1)[:, -1]
    return _where_judged(reached / np.where(judged.sizes > 0, best, 1), judged.sizes)


def average_precision(hits: Hits, qrels: Qrels, k: int | None = None) -> Values:
    """Sum of the precisions at the ranks of the gold passages among the first k hits, over all gold passages.

    Its mean over queries is the MAP. A gold passage that is not among the hits adds 0. Without k, all
    the hits count. Parameters, returned shape and errors are otherwise those of :func:`recall`.

    References
    ----------
    Buckley and Voorhees, in TREC: Experiment and Evaluation in Information Retrieval (2005), section 3.1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, average_precision
    >>> average_precision(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]])).round(3)
    array([0.833])
    """
    relevant = relevance(hits, qrels.gold_pairs, k)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    sizes = qrels.gold_pairs.sizes
    return _where_judged((precision * relevant).sum(axis=1) / np.maximum(sizes, 1), sizes)


def _ideal_gains(judged: JudgedPairs, k: int) -> NDArray[np.int64]:
    """The first k grades of each query, highest first, shape (B, k); 0 where there are fewer."""
    order = np.lexsort((-judged.grade, judged.query))
    rank = np.arange(order.size) - np.repeat(np.cumsum(judged.sizes) - judged.sizes, judged.sizes)
    kept = rank < k
    ideal = np.zeros((judged.sizes.size, k), np.int64)
    ideal[judged.query[order][kept], rank[kept]] = judged.grade[order][kept]
    return ideal


def _where_judged(values: ArrayLike, sizes: NDArray[np.int64]) -> Values:
    return np.where(sizes > 0, np.asarray(values, np.float64), np.nan)
