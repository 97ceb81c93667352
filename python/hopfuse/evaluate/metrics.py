"""Ranking metrics, a value per query; NaN where a query has nothing to be judged by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..types import Hits
from .qrels import Qrels
from .relevance import relevance

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
    """Normalised discounted cumulative gain at k: binary gains, discount 1 / log2(1 + rank).

    The ideal ranking has min(k, gold passages) relevant hits at the top. Parameters, returned shape
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
    relevant = relevance(hits, qrels.gold_pairs, k)
    discount = 1 / np.log2(np.arange(2, k + 2))
    # One running sum for both sides, so that a perfect ranking is exactly 1.
    gain = np.cumsum(relevant * discount, axis=1)[:, -1]
    ideal = np.cumsum(discount)[np.clip(qrels.gold_pairs.sizes, 1, k) - 1]
    return _where_judged(gain / ideal, qrels.gold_pairs.sizes)


def _where_judged(values: ArrayLike, sizes: NDArray[np.int64]) -> Values:
    return np.where(sizes > 0, np.asarray(values, np.float64), np.nan)


@dataclass(frozen=True)
class Metric:
    """A metric at its cut-off, as :func:`parse_metric` makes it.

    Attributes
    ----------
    name : str
        As written, for instance ``"recall@5"``.
    binary : bool
        True where a query's value is 0 or 1: such metrics have a Wilson interval and can be compared
        with McNemar's test.
    per_query : callable (Hits, Qrels) -> ndarray of float64, shape (B,)
    """

    name: str
    binary: bool
    per_query: Callable[[Hits, Qrels], Values]


_AT_K: dict[str, tuple[Callable[..., Values], bool]] = {
    "recall": (recall, False),
    "hit": (hit, True),
    "full_support": (full_support, True),
    "last_hop": (last_hop, True),
    "mrr": (reciprocal_rank, False),
    "ndcg": (ndcg, False),
}


def parse_metric(name: str) -> Metric:
    """The metric that a name such as ``"recall@5"`` stands for.

    Parameters
    ----------
    name : str
        ``recall@k``, ``hit@k``, ``full_support@k``, ``last_hop@k``, ``ndcg@k``, ``mrr@k``, or ``mrr``
        over all the hits; k is a positive integer.

    Raises
    ------
    InputError
        Any other name.

    Examples
    --------
    >>> from hopfuse.evaluate import parse_metric
    >>> parse_metric("last_hop@5").binary
    True
    """
    if name == "mrr":
        return Metric(name, False, reciprocal_rank)
    match = re.fullmatch(r"([a-z_]+)@([1-9][0-9]*)", name)
    if match is None or match[1] not in _AT_K:
        allowed = ", ".join(f"{kind}@k" for kind in _AT_K)
        raise InputError(f"metric is {name!r}; allowed: {allowed} with k at least 1 (recall@5), or mrr")
    function, binary = _AT_K[match[1]]
    return Metric(name, binary, partial(function, k=int(match[2])))
