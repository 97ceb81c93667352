"""Methods that use only ranks: inverse square rank, Borda count, rank-biased centroids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from .method import FusionMethod, ScoredList, Scores, is_number, unit_weights, values_of, weighted_sum


def isr(lists: Sequence[ScoredList], weights: Any) -> Scores:
    """Return h times the sum of w_l / rank_l^2, with h the number of lists that hold the document; ranks start at 1.

    References
    ----------
    Mourão, Martins & Magalhães, "Multimodal medical information retrieval with unsupervised rank fusion",
    Computerized Medical Imaging and Graphics 39, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.zeros(2)), ScoredList(np.array([2]), np.zeros(1))]
    >>> isr(lists, [1.0, 1.0])
    {4: 1.0, 2: 2.5}
    """
    return {document: held * score for document, (held, score) in _inverse_squares(lists, weights).items()}


def log_isr(lists: Sequence[ScoredList], weights: Any, *, sigma: float) -> Scores:
    """Return ln(h + sigma) times the sum of w_l / rank_l^2; see :func:`isr`.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.zeros(2)), ScoredList(np.array([2]), np.zeros(1))]
    >>> scores = log_isr(lists, [1.0, 1.0], sigma=0.0)
    >>> scores[4], round(scores[2], 4)
    (0.0, 0.8664)
    """
    found = _inverse_squares(lists, weights)
    return {document: math.log(held + sigma) * score for document, (held, score) in found.items()}


def _inverse_squares(lists: Sequence[ScoredList], weights: Any) -> dict[int, tuple[int, float]]:
    ids = [one.ids for one in lists]
    values = [1.0 / np.arange(1.0, one.ids.size + 1) ** 2 for one in lists]
    held = {document: len(own) for document, own in values_of(ids, values).items()}
    return {document: (held[document], score) for document, score in weighted_sum(ids, values, weights).items()}


def borda(lists: Sequence[ScoredList], weights: Any, *, missing: str) -> Scores:
    """Return the sum of w_l points_l, with N - rank_l + 1 points in a union of N documents; ranks start at 1.

    A list of length n gives each document that it lacks (N - n + 1)/2 points, the mean of the remaining points, if
    `missing` is "mean" (BordaFuse), and 0 if it is "zero".

    References
    ----------
    Aslam & Montague, "Models for Metasearch", SIGIR 2001.

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([0, 1, 2]), np.zeros(3)), ScoredList(np.array([2]), np.zeros(1))]
    >>> borda(lists, [1.0, 1.0], missing="mean")
    {0: 4.5, 1: 3.5, 2: 4.0}
    """
    ids = [one.ids for one in lists]
    places = values_of(ids, [np.arange(one.ids.size, dtype=np.float64) for one in lists])
    n, scores = len(places), {}
    for document, own in places.items():
        rest = [0.5 * (n - one.ids.size + 1) if missing == "mean" else 0.0 for one in lists]
        points = [n - own[number] if number in own else rest[number] for number in range(len(lists))]
        scores[document] = math.fsum(float(w) * p for w, p in zip(weights, points, strict=True))
    return scores


def rbc(lists: Sequence[ScoredList], weights: Any, *, phi: float) -> Scores:
    """Return the sum of w_l (1 - phi) phi^(rank_l - 1) over the lists that hold the document; ranks start at 1.

    References
    ----------
    Bailey, Moffat, Scholer & Thomas, "Retrieval Consistency in the Presence of Query Variations", SIGIR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rbc([ScoredList(np.array([4, 2]), np.zeros(2))], [1.0], phi=0.5)
    {4: 0.5, 2: 0.25}
    """
    values = [(1.0 - phi) * np.power(np.float64(phi), np.arange(one.ids.size)) for one in lists]
    return weighted_sum([one.ids for one in lists], values, weights)


def check_sigma(num_lists: int, *, sigma: Any) -> None:
    """Check that sigma is a number from 0 to 1."""
    if not is_number(sigma, 0, 1):
        raise InputError("range", "sigma", "{field} is {given!r}; it must be a number in [0, 1]", given=sigma)


def check_missing(num_lists: int, *, missing: Any) -> None:
    """Check that missing is "mean" or "zero"."""
    if missing not in ("mean", "zero"):
        raise InputError("UNSORTED", "missing", "{field} is {given!r}; it must be 'mean' or 'zero'", given=missing)


def check_phi(num_lists: int, *, phi: Any) -> None:
    """Check that phi is strictly between 0 and 1."""
    if not is_number(phi, 0, 1) or phi in (0, 1):
        raise InputError("type", "phi", "{field} is {given!r}; it must be a number between 0 and 1", given=phi)


ISR = FusionMethod("isr", isr, (), unit_weights)
LOG_ISR = FusionMethod("log_isr", log_isr, (), unit_weights, {"sigma": 0.0}, check_sigma)
BORDA = FusionMethod("borda", borda, (), unit_weights, {"missing": "mean"}, check_missing)
RBC = FusionMethod("rbc", rbc, (), unit_weights, {"phi": 0.9}, check_phi)
