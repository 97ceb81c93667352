"""Find vectors whose float32 scores would not be finite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .native import native


class Unscorable(NamedTuple):
    """A vector without a score, and whether that is for being zero; otherwise it is not finite, or too large."""

    row: int
    is_zero: bool


def first_unscorable(vectors: NDArray[np.float32], needs_length: bool, threads: int = 1) -> Unscorable | None:
    """Return the first vector whose squared norm leaves float32's range; with ``needs_length`` zero does too.

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
    """Return where norms, summed in float32 and in any order, leave open whether a vector is scorable.

    A sum of squares is at most twice too large, whatever is rounded, and with fewer than 2**31 of them six times too
    small; so many squares that round to 0 come to 1.5e-36. The limits themselves are in kernels/cpu/inputs.cpp.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse._arrays.norms import unsure_norms
    >>> unsure_norms(np.array([1.0, 0.0, np.nan], np.float32), needs_length=False)
    array([2])
    """
    least = 1e-17 if needs_length else 0.0
    return np.flatnonzero(~((norms >= least) & (norms <= 4e18)))
