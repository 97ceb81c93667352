"""Holm's correction for several tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted for their number, so that rejecting those up to 5 % errs at all with at most 5 %.

    With the m p-values in ascending order, the i-th is multiplied by m - i + 1, made at least the one
    before it, and at most 1. No independence is assumed.

    Parameters
    ----------
    p_values : array_like of float, shape (m,)
        In [0, 1].

    Returns
    -------
    ndarray of float64, shape (m,)
        In the order given.

    Raises
    ------
    InputError
        Another shape, or a value outside [0, 1].

    References
    ----------
    Holm, Scand. J. Stat. 6 (1979).

    Examples
    --------
    >>> from hopfuse.evaluate import holm
    >>> holm([0.01, 0.04, 0.03]).round(9)
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p_values is {p_values!r}; it must be one list of numbers in [0, 1]")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted
