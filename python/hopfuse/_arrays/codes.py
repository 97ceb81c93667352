"""8-bit codes of vectors, for dense search on the CPU; see kernels/include/hopfuse/dense_topk.h."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .native import native

Codes = dict[str, NDArray[Any]]
Precision = Literal["float32", "float16", "bfloat16"]
#: Bytes of a cache line.
LINE = 64


@cache
def types() -> dict[str, int]:
    """Return the number by which kernels know each precision."""
    found: dict[str, int] = native().dense_types()
    return found


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
    bits = vectors if precision == "float32" else vectors.view(np.uint16)
    part = {name: array[first:end] for name, array in codes.items()}
    native().dense_encode(bits, type=types()[precision], cosine=cosine, threads=threads, **part)
