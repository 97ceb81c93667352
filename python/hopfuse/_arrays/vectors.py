"""Vectors: whether they can be scored in float32, and their 8-bit codes (kernels/include/hopfuse/dense_topk.h)."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import native

# ---- Norms -----------------------------------------------------------------------------------------------------------


class Unscorable(NamedTuple):
    """A vector that cannot be scored because it is zero or, otherwise, because its norm is not finite in float32."""

    row: int
    is_zero: bool


def first_unscorable(vectors: NDArray[np.float32], needs_length: bool, threads: int = 1) -> Unscorable | None:
    """Return the first vector whose squared norm is not finite in float32 or, if ``needs_length``, is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse._arrays.vectors import first_unscorable
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
    >>> from hopfuse._arrays.vectors import unsure_norms
    >>> unsure_norms(np.array([1.0, 0.0, np.nan], np.float32), needs_length=False)
    array([2])
    """
    least = 1e-17 if needs_length else 0.0
    return np.flatnonzero(~((norms >= least) & (norms <= 4e18)))


# ---- Codes -----------------------------------------------------------------------------------------------------------

Codes = dict[str, NDArray[Any]]
Precision = Literal["float32", "float16", "bfloat16"]
#: Bytes of a cache line.
LINE = 64


@cache
def dense_types() -> dict[str, int]:
    """Return the number by which kernels know each precision."""
    found: dict[str, int] = native().dense_types()
    return found


def vector_bits(vectors: NDArray[Any], precision: Precision) -> NDArray[Any]:
    """Return vectors as the bindings take them: float32, or the bits of 16-bit numbers."""
    return vectors if precision == "float32" else vectors.view(np.uint16)


def rows_coded_together() -> int:
    """Return the number of rows to whose multiple codes are padded."""
    return int(native().DENSE_TILE * native().DENSE_STEP)


def padded(rows: int, dim: int) -> tuple[int, int]:
    """Return the padded shape of the codes of ``rows`` vectors."""
    step, group = rows_coded_together(), native().DENSE_GROUP
    return -(-rows // step) * step, -(-dim // group) * group


def empty_codes(rows: int, dim: int) -> Codes:
    """Allocate codes, and the scales, errors and norms from which their error bounds are computed."""
    count, width = padded(rows, dim)
    return {
        "codes": _aligned(count * width).reshape(count, width),
        **{name: np.empty(count, np.float32) for name in ("scale", "error", "norm_code")},
        "norm": np.empty(rows, np.float32),
    }


def _aligned(size: int) -> NDArray[np.uint8]:
    """Allocate bytes that begin at a cache line: kernels read 64 at once, and otherwise touch two lines each time."""
    room = np.empty(size + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size]


def code_bytes(rows: int, dim: int) -> int:
    """Return the size in bytes of what :func:`empty_codes` allocates."""
    count, width = padded(rows, dim)
    return count * (width + 3 * 4) + 4 * rows


def encode(
    vectors: NDArray[Any], first: int, codes: Codes, *, precision: Precision, cosine: bool, threads: int
) -> None:
    """Encode vectors into the rows from ``first`` on, a multiple of :func:`rows_coded_together`."""
    end = first + padded(*vectors.shape)[0]
    bits = vector_bits(vectors, precision)
    part = {name: array[first:end] for name, array in codes.items()}
    native().dense_encode(bits, type=dense_types()[precision], cosine=cosine, threads=threads, **part)
