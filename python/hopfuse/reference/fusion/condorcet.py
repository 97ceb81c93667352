"""Condorcet fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .method import FusionMethod, ScoredList, Scores, unit_weights


def score(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return the Copeland score: the number of documents beaten by weighted majority, plus half the number of ties.

    See :func:`majorities`. Of two strongly connected components of the majority graph, the documents of the winning one
    score higher, as in every order that Condorcet fusion may give; a document that beats all others comes first. Within
    a cycle, documents that beat more others come first, then the lower id.

    References
    ----------
    Montague & Aslam, "Condorcet Fusion for Improved Retrieval", CIKM 2002. Copeland, "A Reasonable Social Welfare
    Function", University of Michigan 1951.

    Examples
    --------
    >>> import numpy as np
    >>> orders = ([4, 2, 9], [2, 9, 4], [4, 9])
    >>> score([ScoredList(np.array(ids), np.zeros(len(ids))) for ids in orders], [1.0, 1.0, 1.0])
    {2: 1.0, 4: 2.0, 9: 0.0}
    """
    documents = np.unique(np.concatenate([one.ids for one in lists]))
    balance = majorities([np.searchsorted(documents, one.ids) for one in lists], weights, documents.size)
    wins = (balance > 0).sum(axis=1) + 0.5 * ((balance == 0).sum(axis=1) - 1)
    return dict(zip(documents.tolist(), wins.tolist(), strict=True))


def majorities(places: Sequence[NDArray[np.int64]], weights: Any, documents: int) -> NDArray[np.float64]:
    """Return the weight of the lists that rank a above b minus those that rank it below, (documents, documents).

    A list ranks the documents that it holds (`places`, best first) above those that it lacks, and does not rank two
    that it lacks. Weights are rounded to float32, so that their float64 sums are exact and equal votes tie.

    Examples
    --------
    >>> import numpy as np
    >>> majorities([np.array([1, 0])], [2.0], 3)
    array([[ 0., -2.,  2.],
           [ 2.,  0.,  2.],
           [-2., -2.,  0.]])
    """
    balance = np.zeros((documents, documents))
    for own, weight in zip(places, np.asarray(weights, np.float32).astype(np.float64), strict=True):
        rank = np.full(documents, own.size)
        rank[own] = np.arange(own.size)
        balance += weight * np.sign(rank[None, :] - rank[:, None])
    return balance


CONDORCET = FusionMethod("condorcet", score, (), unit_weights)
