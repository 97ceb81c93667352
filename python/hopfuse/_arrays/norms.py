"""Find vectors whose float32 scores would not be finite."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Unscorable(NamedTuple):
    """A vector without a score, and whether that is for being zero; otherwise it is not finite, or too large."""

    row: int
    is_zero: bool


def first_unscorable(vectors: NDArray[np.float32], needs_length: bool) -> Unscorable | None:
    """Return the first vector whose squared norm leaves float32's range; with ``needs_length`` zero does too.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse._arrays.norms import first_unscorable
    >>> first_unscorable(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32), needs_length=True)
    Unscorable(row=1, is_zero=True)
    """
    found = _kernel()(vectors, needs_length)
    return None if found is None else Unscorable(*found)


@cache
def _kernel() -> Callable[..., Any]:
    """Load the kernels for the first vectors: rooms that only read hits import the types without them."""
    from .. import _native

    return _native.first_unscorable
