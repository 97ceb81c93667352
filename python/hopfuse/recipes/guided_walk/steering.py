"""The vectors that steer a guided walk: a question's own, and that of what it asks beside its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def steering_vectors(encoder: Any, vectors: Any, texts: Sequence[str], others: Sequence[str]) -> Any:
    """Return the sum of each question's vector and that of its words other than names, (B, d).

    A question without names, or whose other words the encoder has no vector for, keeps its own.

    Parameters
    ----------
    encoder : Encoder
        Of the passages.
    vectors : ndarray (B, d)
        Of the questions; vectors that the walk refuses are returned as they are.
    texts, others : sequence of B str
        The questions, and the questions without the names in them.
    """
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        return vectors
    asked = enumerate(zip(texts, others, strict=True))
    rest = {b: other for b, (text, other) in asked if other != text and any(map(str.isalnum, other))}
    made = {b: one for b, one in _vectors_of(encoder, rest).items() if one.shape == array.shape[1:]}
    if not made:
        return vectors
    rows = np.array(list(made))
    with np.errstate(over="ignore", invalid="ignore"):  # the walk refuses such vectors
        own = _unit_rows(np.asarray(array, np.float64)[rows])
        both = own + _unit_rows(np.array(list(made.values()), np.float64))
        steering = np.array(array, np.float32)
        is_long = np.sum(both * both, axis=1) > 1e-12  # False for NaN
    steering[rows[is_long]] = both[is_long]
    return steering


def _vectors_of(encoder: Any, texts: Mapping[int, str]) -> dict[int, NDArray[Any]]:
    """Return the encoder's vectors of texts by number, without those that it has none for."""
    if not texts:
        return {}
    try:
        return dict(zip(texts, np.asarray(encoder.encode_queries(list(texts.values()))), strict=True))
    except ValueError:  # of any library; one text without a vector refuses them all
        if len(texts) == 1:
            return {}
        return {b: found for one in texts for b, found in _vectors_of(encoder, {one: texts[one]}).items()}


def _unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows scaled to length 1; a row of zeros stays."""
    lengths = np.sqrt(np.sum(vectors * vectors, axis=1, keepdims=True))
    scaled: NDArray[np.float64] = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)
    return scaled
