"""Minimum similarities of entities that are joined as synonyms: one, or one for each label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_number
from ..errors import InputError
from .synonyms import ANY, similar_pairs

Bounds = float | Mapping[str, float]


def synonym_bounds(synonyms: str | Bounds, labels: Sequence[str] | None = None) -> float | dict[str, float]:
    """Return the minimum similarity of synonyms, or one for each label.

    Parameters
    ----------
    synonyms : str, float in [0, 1], or mapping of str to float
        As ``hopfuse build --synonyms`` takes it: ``"0.8"`` or ``"PERSON=0.85,*=0.9"``, where ``*`` stands for other
        labels; or what was read from it.
    labels : sequence of str, optional
        The labels that entities can have, if they are known; any other is refused.

    Returns
    -------
    float, or dict of str to float

    Raises
    ------
    InputError
        A bound is not a number in [0, 1], a label is missing or there twice, or no entity can have it.

    Examples
    --------
    >>> from hopfuse.extract import synonym_bounds
    >>> synonym_bounds("0.8"), synonym_bounds("PERSON=0.85,*=0.9", labels=["ORG", "PERSON"])
    (0.8, {'PERSON': 0.85, '*': 0.9})
    """
    if isinstance(synonyms, str) and "=" in synonyms:
        bounds = dict(_read(synonyms))
    elif isinstance(synonyms, Mapping):
        bounds = {label: _bound(given, label) for label, given in synonyms.items()}
    else:
        return check_number(_number(synonyms), "synonyms", low=0, high=1)
    if labels is not None:
        _check_labels(bounds, labels)
    return bounds


def synonym_pairs(
    vectors: Any, synonyms: Bounds, labels: Sequence[str], *, threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the pairs of entities that are similar enough; entities with a label without a bound are left out.

    Parameters
    ----------
    vectors : array_like of float (E, d)
        Compared by cosine.
    synonyms : float, or mapping of str to float
        From :func:`synonym_bounds`. A pair of different labels must reach the larger of their bounds.
    labels : sequence of str, E entries
        Labels such as :attr:`Memory.labels`.
    threads : int, optional

    Returns
    -------
    pairs : ndarray of int64, shape (M, 2)
        a < b in each row, rows ascending.
    similarities : ndarray of float32, shape (M,)

    Raises
    ------
    InputError
        The labels are not one per vector, or a bound is outside [-1, 1].

    Examples
    --------
    >>> from hopfuse.extract import synonym_pairs
    >>> synonym_pairs([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], {"ORG": 0.9}, ["ORG", "", "ORG"])[0]
    array([[0, 2]])
    """
    if not isinstance(synonyms, Mapping):
        return similar_pairs(vectors, synonyms, threads=threads)
    check_length(len(labels), "labels", len(vectors), "vector")
    rows = np.flatnonzero([ANY in synonyms or label in synonyms for label in labels])
    types = [labels[row] for row in rows.tolist()]
    pairs, similarities = similar_pairs(np.asarray(vectors)[rows], synonyms, types=types, threads=threads)
    return rows[pairs], similarities


def _read(given: str) -> Iterator[tuple[str, float]]:
    known = set[str]()
    for part in given.split(","):
        label, _, number = (piece.strip() for piece in part.partition("="))
        if not label:
            raise InputError(
                "syntax",
                "synonyms",
                "{field} is {given!r}, where {part!r} has no label; give one similarity, or one for each label: "
                "PERSON=0.85,ORG=0.8,*=0.9",
                given=given,
                part=part,
            )
        if label in known:
            raise InputError(
                "duplicate",
                "synonyms",
                "{field} is {given!r}, which has the label {label!r} twice; give it one similarity",
                given=given,
                label=label,
            )
        known.add(label)
        yield label, _bound(number, label)


def _bound(given: Any, label: str) -> float:
    return check_number(_number(given), f"synonyms[{label}]", low=0, high=1)


def _number(given: Any) -> Any:
    """Return the number that a text is, and anything else as it is."""
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return given


def _check_labels(bounds: Mapping[str, float], known: Sequence[str]) -> None:
    for label in bounds:
        if label == ANY or label in known:
            continue
        if not known:
            raise InputError(
                "unused",
                "synonyms",
                "{field} has the label {label!r}, but only the reader spacy gives entities labels; give one similarity "
                "for all of them",
                label=label,
            )
        raise InputError(
            "unknown",
            "synonyms",
            "{field} has the label {label!r}; the reader's labels are {allowed}",
            label=label,
            allowed=", ".join(known),
        )
