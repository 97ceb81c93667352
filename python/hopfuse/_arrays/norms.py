"""Find vectors that cannot be scored in float32."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .native import native


class Unscorable(NamedTuple):
    """A vector that cannot be scored because it is zero or, otherwise, because its norm is not finite in float32."""

    row: int
    is_zero: bool


def first_unscorable(vectors: NDArray[np.float32], needs_length: bool, threads: int = 1) -> Unscorable | None:
    """Return the first vector whose squared norm is not finite in float32 or, if ``needs_length``, is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse._arrays.norms import first_unscorable
    >>> first_unscorable(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32), needs_length=True)
    Unscorable(row=1, is_zero=True)
    """
    found = native().first_unscorable(vectors, needs_length, threads)
    return None if found is None else Unscorable(*found)


def unsure_norms(norms: NDArray[np.float32], needs_length: bool) -> NDArray[np.intp]:
    """Return the rows for which a norm summed in float32, in any order, does not decide whether the row can be scored.

    Whatever is rounded, such a sum of squares is at most twice too large and, with fewer than 2**31 terms, at most six
    times too small; that many squares that underflow to 0 sum to 1.5e-36. The exact limits are in
    kernels/cpu/inputs.cpp.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse._arrays.norms import unsure_norms
    >>> unsure_norms(np.array([1.0, 0.0, np.nan], np.float32), needs_length=False)
    array([2])
    """
    least = 1e-17 if needs_length else 0.0
    return np.flatnonzero(~((norms >= least) & (norms <= 4e18)))
