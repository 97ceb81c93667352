"""What every encoder promises about its input and its output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; a bare string, or anything in them that is not one, is refused."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"texts is one {type(texts).__name__}; pass a list of strings: [text]")
    listed = list(texts)
    for at, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"texts[{at}] is a {type(text).__name__}; every text must be a string")
    return listed


def positive(value: int, name: str) -> int:
    """The value, an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{name} is {value!r}; it must be an integer, at least 1")
    return int(value)


def finished(vectors: Any, count: int, dim: int, normalize: bool) -> NDArray[np.float32]:
    """The vectors as float32 (count, dim), C-contiguous, finite, each of length 1 if asked for."""
    raw = np.asarray(vectors)
    if raw.dtype.kind not in "fiu" or raw.shape != (count, dim):
        raise InputError(f"the vectors are {raw.dtype}{raw.shape}; they must be real numbers of shape {(count, dim)}")
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(raw, dtype=np.float32)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise InputError(f"the vector of text {int(np.argmin(finite))} has a NaN or an entry outside float32's range")
    return _unit(rows) if normalize else rows


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
    if (lengths == 0).any():
        raise InputError(
            f"text {int(np.argmin(lengths))} has the zero vector, which has no direction (is the text empty?); "
            "leave it out, or pass normalize=False"
        )
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit
