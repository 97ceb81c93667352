"""Oracle of dice_scores, in exact rational arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..text import fold, runs_in, spaced


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
