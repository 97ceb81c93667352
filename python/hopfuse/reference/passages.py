"""Oracles of the scores and weights of passages: dice_scores, project, project_topk, similarity_weights, boost_weights.

That of dice_scores is exact rational arithmetic, the others are float64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_k
from ..text import fold, runs_in, spaced
from ..types import Corpus, Incidence
from .dense import dense_scores
from .ranking import Ranking, best, node_mask

__all__ = ["boost_weights", "dice", "dice_scores", "elements", "project", "project_topk", "similarity_weights"]

#: The smallest standard deviation of similarities; rounding may produce smaller ones from equal cosines.
LEAST_SPREAD = 2.0**-16


def elements(text: str, unit: str = "bigrams", repeats: bool = False) -> Counter[str]:
    """Return the elements of a text with their multiplicities, which are 1 unless ``repeats``.

    Examples
    --------
    >>> from hopfuse.reference import elements
    >>> sorted(elements("Ada add").items()), elements("ana na", repeats=True)["na"]
    ([('ad', 1), ('da', 1), ('dd', 1)], 2)
    """
    folded = fold(text)
    if unit == "words":
        found = runs_in(spaced(folded))
    else:
        found = [first + second for word in folded.split() for first, second in pairwise(word)]
    return Counter(found if repeats else set(found))


def dice(x: Counter[str], y: Counter[str]) -> Fraction:
    """Return ``2·|X ∩ Y| / (|X| + |Y|)``, or 0 if both are empty.

    Examples
    --------
    >>> from hopfuse.reference import dice, elements
    >>> dice(elements("night"), elements("nacht"))
    Fraction(1, 4)
    """
    sizes = x.total() + y.total()
    return Fraction(2 * (x & y).total(), sizes) if sizes else Fraction(0)


def dice_scores(
    texts: Sequence[str],
    labels: Sequence[str],
    candidates: Sequence[Sequence[int]],
    indptr: Sequence[int],
    *,
    unit: str = "bigrams",
    repeats: bool = False,
) -> NDArray[np.float64]:
    """Return the mean coefficient of each candidate's labels with its text, rounded once.

    Examples
    --------
    >>> from hopfuse.reference import dice_scores
    >>> dice_scores(["night"], ["nacht", "night"], [[0, 1]], [0, 1])
    array([0.625])
    """
    sets = [elements(label, unit, repeats) for label in labels]
    scores = []
    for text, begin, end in zip(texts, indptr[:-1], indptr[1:], strict=True):
        query = elements(text, unit, repeats)
        for row in candidates[begin:end]:
            scores.append(float(sum((dice(query, sets[label]) for label in row), Fraction(0)) / len(row)))
    return np.array(scores, np.float64)


def project(scores: ArrayLike, incidence: Incidence, *, scale: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return u_p = scale_p Σ_e w_pe v_e for each query, (B, P).

    Parameters
    ----------
    scores : array_like (B, N) or (N,)
        v.
    incidence : Incidence
        w, P rows by N columns; 1 each without weights.
    scale : array_like (P,), optional
        Default: 1 each.

    References
    ----------
    u = Bᵀv: PolicyRAG. The passage probabilities of HippoRAG, NeurIPS 2024, section 2.3.

    Examples
    --------
    >>> import hopfuse as hf
    >>> pairs = hf.Incidence.from_pairs([0, 0, 1], [0, 2, 1], [1.0, 0.5, 2.0], num_rows=2, num_columns=3)
    >>> project([0.1, 0.2, 0.4], pairs)
    array([[0.3, 0.4]])
    """
    v = np.atleast_2d(np.asarray(scores, np.float64))
    weights = np.ones(incidence.indices.size) if incidence.weights is None else incidence.weights.astype(np.float64)
    u = np.zeros((v.shape[0], incidence.num_rows))
    for p in range(incidence.num_rows):
        row = slice(int(incidence.indptr[p]), int(incidence.indptr[p + 1]))
        u[:, p] = v[:, incidence.indices[row]] @ weights[row]
    return u if scale is None else np.asarray(u * np.asarray(scale, np.float64))


def project_topk(scores: ArrayLike, incidence: Incidence, k: Any, *, scale: ArrayLike | None = None) -> Ranking:
    """Return the k rows with the highest u_p above 0.

    Examples
    --------
    >>> import hopfuse as hf
    >>> pairs = hf.Incidence.from_pairs([0, 0, 1], [0, 2, 1], num_rows=3, num_columns=3)
    >>> project_topk([0.1, 0.2, 0.4], pairs, 3).row(0)
    [(0, 0.5), (1, 0.2)]
    """
    k = min(check_k(k), incidence.num_rows)
    rows = []
    for u in project(scores, incidence, scale=scale):
        above = np.flatnonzero(u > 0).astype(np.int64)
        rows.append(best(above, u[above], k))
    return Ranking.from_rows(rows, k)


def similarity_weights(
    queries: Any, corpus: Any, *, tau: float, floor: float = 1e-4, allow: Any = None
) -> NDArray[np.float64]:
    """Return max(exp((c - max c) / (tau s)), floor), (B, N), of the cosines c, with s their standard deviation.

    Parameters
    ----------
    queries : array_like of float, shape (B, d) or (d,)
    corpus : Corpus, or array_like of float, shape (N, d)
        Without zero vectors. Cosines are used whatever its metric.
    tau : float
        In units of s, which is at least 2⁻¹⁶.
    allow : bool (N,) or (B, N), ids (m,), or a sequence of B id arrays, optional
        The vectors of which the maximum and s are taken; others get weight 0.

    Examples
    --------
    >>> from hopfuse.reference import similarity_weights
    >>> similarity_weights([[1.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]], tau=2.0)
    array([[1.        , 0.36787944]])
    """
    vectors = corpus.as_float32() if isinstance(corpus, Corpus) else corpus
    cosines = dense_scores(queries, vectors, metric="cosine")
    mask = node_mask(allow, "allow", *cosines.shape)
    weights = np.zeros(cosines.shape)
    for row, c, m in zip(weights, cosines, mask, strict=True):
        row[m] = _weights(c[m], tau, floor)
    return weights


def _weights(c: NDArray[np.float64], tau: float, floor: float) -> NDArray[np.float64]:
    if not c.size:
        return c
    spread = np.sqrt(np.mean((c - c.mean()) ** 2))
    return np.asarray(np.maximum(np.exp((c - c.max()) / (tau * max(spread, LEAST_SPREAD))), floor))


def boost_weights(weights: Any, hits: Sequence[Sequence[tuple[int, float]]], strength: float) -> NDArray[np.float64]:
    """w_p (1 + strength s_p / max s) for the hits (p, s_p) of each query with s_p > 0; other weights stay: (B, N).

    Examples
    --------
    >>> from hopfuse.reference import boost_weights
    >>> boost_weights([[0.5, 1.0, 0.25]], [[(2, 8.0), (0, 4.0)]], 2.0)
    array([[1.  , 1.  , 0.75]])
    """
    boosted = np.array(weights, np.float64)
    for row, found in zip(boosted, hits, strict=True):
        most = max((score for _, score in found), default=0.0)
        for passage, score in found:
            if score > 0:
                row[passage] *= 1 + strength * score / most
    return boosted
