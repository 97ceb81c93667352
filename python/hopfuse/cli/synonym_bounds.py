"""``--synonyms``: how similar entities have to be, all of them or those of each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..extract import similar_pairs

Bounds = float | Mapping[str, float]
ANY = "*"  # whatever has no bound of its own
ALLOWED = "a similarity in [0, 1], or one for each label: PERSON=0.85,ORG=0.8,*=0.9"


def read_bounds(given: str) -> Bounds:
    """The least similarity, or one for each label.

    Examples
    --------
    >>> read_bounds("0.8"), read_bounds("PERSON=0.85,*=0.9")
    (0.8, {'PERSON': 0.85, '*': 0.9})
    """
    if "=" not in given:
        return _similarity(given, given)
    bounds: dict[str, float] = {}
    for part in given.split(","):
        label, _, number = (piece.strip() for piece in part.partition("="))
        if not label:
            raise InputError(f"--synonyms is {given!r}, where {part!r} has no label; it must be {ALLOWED}")
        if label in bounds:
            raise InputError(f"--synonyms is {given!r}, which has the label {label!r} twice; give it one similarity")
        bounds[label] = _similarity(number, given)
    return bounds


def check_labels(bounds: Mapping[str, float], known: Sequence[str]) -> None:
    """Refuse labels that no entity can have."""
    for label in bounds:
        if label == ANY or label in known:
            continue
        if not known:
            raise InputError(
                f"--synonyms has the label {label!r}, and entities have labels with --reader spacy alone; give one "
                "similarity for all of them"
            )
        raise InputError(f"--synonyms has the label {label!r}; the reader gives {', '.join(known)}")


def joined_pairs(
    vectors: NDArray[np.floating], labels: Sequence[str], bounds: Bounds
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Pairs of entities that are similar enough, and how similar they are; without ``*`` those of given labels alone.

    Examples
    --------
    >>> joined_pairs(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), ["ORG", "", "ORG"], {"ORG": 0.9})[0]
    array([[0, 2]])
    """
    if not isinstance(bounds, Mapping):
        return similar_pairs(vectors, bounds)
    rows = np.flatnonzero([ANY in bounds or label in bounds for label in labels])
    pairs, similarities = similar_pairs(vectors[rows], bounds, types=[labels[row] for row in rows.tolist()])
    return rows[pairs], similarities


def _similarity(number: str, given: str) -> float:
    try:
        similarity = float(number)
    except ValueError:
        raise InputError(f"--synonyms is {given!r}; it must be {ALLOWED}") from None
    if not 0 <= similarity <= 1:
        raise InputError(f"--synonyms is {given!r}, where {number} is no similarity in [0, 1]; it must be {ALLOWED}")
    return similarity
