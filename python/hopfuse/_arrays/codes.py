"""8-bit codes of vectors, from which dense search on the CPU finds candidates: kernels/include/hopfuse/dense_topk.h."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .native import native

Codes = dict[str, NDArray[Any]]
Precision = Literal["float32", "float16", "bfloat16"]


@cache
def types() -> dict[str, int]:
    """Return the kernels' number of each precision of originals."""
    found: dict[str, int] = native().dense_types()
    return found


def rows_coded_together() -> int:
    """Return what the rows of codes are padded to a multiple of."""
    return int(native().DENSE_TILE * native().DENSE_STEP)


def padded(rows: int, dim: int) -> tuple[int, int]:
    """Return the rows and columns of the codes of so many vectors."""
    step, group = rows_coded_together(), native().DENSE_GROUP
    return -(-rows // step) * step, -(-dim // group) * group


def empty_codes(rows: int, dim: int) -> Codes:
    """Return room for codes, and for the scales and norms that bound what they leave out."""
    count, width = padded(rows, dim)
    return {
        "codes": np.empty((count, width), np.uint8),
        **{name: np.empty(count, np.float32) for name in ("scale", "error", "norm_code")},
        "norm": np.empty(rows, np.float32),
    }


def code_bytes(rows: int, dim: int) -> int:
    """Return the bytes that codes take, with their scales and norms."""
    count, width = padded(rows, dim)
    return count * (width + 3 * 4) + 4 * rows


def encode(
    vectors: NDArray[Any], first: int, codes: Codes, *, precision: Precision, cosine: bool, threads: int
) -> None:
    """Write the codes of vectors, the first of which is row ``first``: a multiple of :func:`rows_coded_together`."""
    end = first + padded(*vectors.shape)[0]
    bits = vectors if precision == "float32" else vectors.view(np.uint16)
    part = {name: array[first:end] for name, array in codes.items()}
    native().dense_encode(bits, type=types()[precision], cosine=cosine, threads=threads, **part)
