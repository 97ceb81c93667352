"""Arrays of any library on the CPU, and lists, as NumPy arrays; results as arrays of that library (DLPack)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

_CPU_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
_ON_HOST = (np.ndarray, list, tuple, dict)


def is_on_device(array: Any) -> bool:
    """Return True for an array in the memory of a GPU, by ``__cuda_array_interface__`` or DLPack."""
    if isinstance(array, _ON_HOST):
        return False
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) not in _CPU_DEVICES
    return hasattr(array, "__cuda_array_interface__")


def to_numpy(array: Any, name: str) -> NDArray[Any]:
    """Return a NumPy view of an array on the CPU, or of a list; an array elsewhere is an error."""
    if type(array) is np.ndarray:
        return array
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise InputError(f"{name} is a masked array, whose masked entries have no value; pass {name}.compressed()")
        return np.asarray(array.data)
    if isinstance(array, np.ndarray):
        return array
    if is_on_device(array):
        raise InputError(
            f"{name} is a {type(array).__name__} on a device, which the CPU cannot read in place; move it to the host, "
            "or use backend='cuda'"
        )
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                f"{name} is a {type(array).__name__} that the CPU cannot read in place ({error}); move it there first"
            ) from error
    try:
        return np.asarray(array)
    except ValueError as error:
        raise InputError(f"{name} is not a rectangular array: {error}") from error


def to_float64(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return as float64: the array itself if it is that without a NaN; signalling NaNs become quiet, without a warning.

    Examples
    --------
    >>> from hopfuse._arrays.convert import to_float64
    >>> to_float64(np.array([1, 2]))
    array([1., 2.])
    """
    if array.dtype != np.float64:
        with np.errstate(invalid="ignore"):  # whoever asks refuses NaN, and says where it is
            array = array.astype(np.float64)
    missing = np.isnan(array)
    return np.where(missing, np.nan, array) if np.count_nonzero(missing) else array


def same_library(array: Any) -> Callable[[NDArray[Any]], Any]:
    """Return a function from a NumPy result to an array of the library of ``array``, without a copy."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return lambda result: result
    if hasattr(array, "__array_namespace__"):
        library = array.__array_namespace__()
    else:
        library = sys.modules[type(array).__module__.split(".")[0]]
    from_dlpack: Callable[[Any], Any] | None = getattr(library, "from_dlpack", None)
    if from_dlpack is None:
        raise InputError(
            f"{type(array).__name__} has no from_dlpack to return results with; pass NumPy arrays: np.from_dlpack(x)"
        )
    return from_dlpack
