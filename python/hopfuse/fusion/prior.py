"""A prior on documents, independent of the query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number, check_shape
from ..errors import InputError


class Prior:
    """The importance of documents, which multiplies fused scores: final = fused * ((1 - weight) + weight * importance).

    Build it once; if ``hf.fuse(lists, prior=...)`` gets an array, it builds one in every call. Meant for scores of at
    least 0, because it raises negative ones.

    Parameters
    ----------
    importance : array_like of real numbers, shape (N,), on the host
        In [0, 1] for documents 0 .. N - 1, or NaN if unknown. Such documents, and those with an id of N or more, keep
        their scores.
    weight : float in [0, 1]
        The share of the factor that depends on importance.

    Attributes
    ----------
    factors : ndarray of float32, shape (N,)
        The factor of each document's score.

    Raises
    ------
    InputError
        Importance of another shape, below 0 or above 1; a weight out of range.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hits = hf.Hits([[0, 1, 2]], [[1.0, 1.0, 1.0]])
    >>> prior = hf.fusion.Prior([0.0, 1.0, float("nan")], weight=0.25)
    >>> hf.fuse([hits], method="linear", calibration="none", prior=prior, k=3).row(0)
    [(1, 1.0), (2, 1.0), (0, 0.75)]
    """

    __slots__ = ("factors", "weight")

    factors: NDArray[np.float32]
    weight: float

    def __init__(self, importance: Any, *, weight: float = 0.3) -> None:
        try:
            with np.errstate(invalid="ignore"):  # a signalling NaN means unknown, too
                known = np.asarray(importance, np.float64)
        except (TypeError, ValueError, OverflowError):
            known = np.zeros(())
        check_shape(known.shape, "prior", ("N",), reason="one number per document")
        missing = np.isnan(known)
        wrong = ~(missing | ((known >= 0) & (known <= 1)))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise InputError(
                "range",
                f"prior[{at}]",
                "{field} is {given}; importance must be {allowed}",
                given=float(known[at]),
                allowed="in [0, 1], or NaN",
            )
        check_number(weight, "weight", low=0, high=1)
        factors = np.where(missing, 1.0, (1.0 - weight) + weight * np.where(missing, 0.0, known)).astype(np.float32)
        factors.flags.writeable = False
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "weight", float(weight))

    def part(self, documents: NDArray[np.int64]) -> Prior:
        """Return the prior of a subset of the documents, numbered from 0."""
        made = object.__new__(Prior)
        factors = self.factors[documents]
        factors.flags.writeable = False
        object.__setattr__(made, "factors", factors)
        object.__setattr__(made, "weight", self.weight)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Prior is immutable; build another one with {name}")

    def __repr__(self) -> str:
        return f"Prior(documents={self.factors.size}, weight={self.weight})"
