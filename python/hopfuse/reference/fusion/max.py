"""Max fusion: a document's best calibrated score, with a bias per list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from .method import EVERY, FusionMethod, ScoredList, Scores


def score(lists: Sequence[ScoredList], weights: Any, *, bias: Any) -> Scores:
    """Return the maximum of (c_l + bias_l) over the lists that hold the document.

    A list that lacks a document is ignored, not counted as 0. With two lists and the bias (0, 1e-6) this is the union
    rule of the Dice-Sørensen hybrid.

    Parameters
    ----------
    bias : (L,) or None
        None means 0 for every list.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference.fusion.method import ScoredList
    >>> lists = [ScoredList(np.array([4, 2]), np.array([1.0, 0.5])), ScoredList(np.array([2]), np.array([0.5]))]
    >>> score(lists, None, bias=(0.0, 0.25))
    {4: 1.0, 2: 0.75}
    """
    offsets = [0.0] * len(lists) if bias is None else [float(b) for b in bias]
    top: Scores = {}
    for one, offset in zip(lists, offsets, strict=True):
        for document, value in zip(one.ids.tolist(), one.scores.tolist(), strict=True):
            top[document] = max(top.get(document, -np.inf), value + offset)
    return top


def check(num_lists: int, *, bias: Any) -> None:
    """Check that bias is None or a finite number per list."""
    if bias is None:
        return
    array = np.asarray(bias)
    if array.shape != (num_lists,) or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(
            "length",
            "bias",
            "{field} is {given!r}; it must be {allowed} finite numbers, one per list",
            given=bias,
            allowed=num_lists,
        )


_NONE_FIRST = ("none", *(name for name in EVERY if name != "none"))
MAX = FusionMethod("max", score, _NONE_FIRST, None, {"bias": None}, check)
