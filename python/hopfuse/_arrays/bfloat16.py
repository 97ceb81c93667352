"""bfloat16 numbers, which NumPy lacks, as uint16: the upper 16 bits of the float32 of the same value."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .convert import is_on_device, to_numpy

_PART = 1 << 20  # values rounded at a time


def bfloat16_bits(array: Any, name: str) -> NDArray[np.uint16] | None:
    """Return a view of the bits of an ml_dtypes or torch bfloat16 array; None for any other array.

    Raises
    ------
    InputError
        The array is on a device, or its library cannot export it.
    """
    dtype = _name_of(getattr(array, "dtype", None))
    if dtype == "torch.bfloat16":  # torch cannot export bfloat16 to NumPy, but can export its bits
        return to_numpy(array.view(sys.modules["torch"].int16), name).view(np.uint16)
    if dtype != "bfloat16":
        return None
    if is_on_device(array):
        to_numpy(array, name)  # raises, with advice
    return np.asarray(array).view(np.uint16)


@lru_cache(maxsize=64)
def _name_of(dtype: Any) -> str:
    """Return the name of a dtype; cached, because str() of a NumPy dtype takes several microseconds."""
    return str(dtype)


def round_to_bfloat16(array: NDArray[Any]) -> NDArray[np.uint16]:
    """Return the bits of each number rounded to bfloat16, to nearest even; overflow gives infinity.

    Parameters
    ----------
    array : ndarray of real numbers, shape (N, d)

    Examples
    --------
    1 + 2**-8 is halfway between 1 and 1 + 2**-7, and 1 is even; a slightly larger number rounds up:

    >>> import numpy as np
    >>> from hopfuse._arrays.bfloat16 import bfloat16_to_float32, round_to_bfloat16
    >>> bfloat16_to_float32(round_to_bfloat16(np.array([[1 + 2**-8, 1 + 2**-8 + 2**-40]]))).tolist()
    [[1.0, 1.0078125]]
    """
    out = np.empty(array.shape, np.uint16)
    step = max(1, _PART // max(1, array.shape[1]))
    for start in range(0, array.shape[0], step):
        out[start : start + step] = _rounded(array[start : start + step])
    return out


def bfloat16_to_float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Convert bfloat16 bits to float32, without rounding."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _rounded(part: NDArray[Any]) -> NDArray[np.uint16]:
    exact = part.astype(np.longdouble) if part.dtype.kind in "iu" else part
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        near = exact.astype(np.float32)
        if exact.dtype.itemsize > 4:
            near = _to_odd(exact, near)
    bits = near.view(np.uint32)
    even = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(near), 0x7FC0, even).astype(np.uint16)


def _to_odd(exact: NDArray[Any], near: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to odd in float32, so that rounding the result again to bfloat16 does not round twice."""
    wide = near.astype(exact.dtype)
    is_even = (near.view(np.uint32) & 1) == 0
    towards = np.where(exact > wide, np.float32(np.inf), np.float32(-np.inf))
    return np.where(is_even & (wide != exact) & ~np.isnan(near), np.nextafter(near, towards), near)
