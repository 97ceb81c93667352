"""Convert lists and other libraries' CPU arrays to NumPy, and results back to the caller's library (DLPack)."""

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
    """Return whether an array is in GPU memory, according to DLPack or ``__cuda_array_interface__``."""
    if isinstance(array, _ON_HOST):
        return False
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) not in _CPU_DEVICES
    return hasattr(array, "__cuda_array_interface__")


def to_numpy(array: Any, name: str) -> NDArray[Any]:
    """Return a CPU array as a NumPy array, without a copy, or a list as a new one; raise for an array on a device."""
    if type(array) is np.ndarray:
        return array
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise InputError(
                "missing", name, "{field} has masked entries, which have no value; pass {field}.compressed()"
            )
        return np.asarray(array.data)
    if isinstance(array, np.ndarray):
        return array
    if is_on_device(array):
        raise InputError(
            "unavailable",
            name,
            "{field} is on a device ({given}), where the CPU cannot read it; copy it to the host, or use "
            "backend='cuda'",
            given=type(array).__name__,
        )
    nulls = getattr(array, "null_count", 0)  # of pyarrow; a method of polars
    nulls = nulls() if callable(nulls) else nulls
    if isinstance(nulls, int) and nulls:
        raise InputError(
            "missing",
            name,
            "{field} has {given} nulls, which have no value; drop or fill them, as by {field}.drop_null()",
            given=nulls,
        )
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            if getattr(array, "requires_grad", False):
                raise InputError(
                    "unsupported", name, "{field} is a tensor that records gradients; pass {field}.detach()"
                ) from error
            raise InputError(
                "unsupported",
                name,
                "{field} ({given}) cannot be read as a NumPy array: {error}; convert it",
                given=type(array).__name__,
                error=error,
            ) from error
    try:
        return np.asarray(array)
    except InputError:
        raise  # from an object that refuses to be an array
    except ValueError as error:
        raise InputError("shape", name, "{field} is not a rectangular array: {error}", error=error) from error


def to_float64(array: NDArray[Any]) -> NDArray[np.float64]:
    """Convert to float64, without a copy if possible; signalling NaNs become quiet ones, without a warning.

    Examples
    --------
    >>> from hopfuse._arrays.convert import to_float64
    >>> to_float64(np.array([1, 2]))
    array([1., 2.])
    """
    if array.dtype != np.float64:
        with np.errstate(invalid="ignore"):  # callers refuse NaN with a message that says where it is
            array = array.astype(np.float64)
    missing = np.isnan(array)
    return np.where(missing, np.nan, array) if np.count_nonzero(missing) else array


def same_library(array: Any) -> Callable[[NDArray[Any]], Any]:
    """Return a function that converts a NumPy result to the library of ``array``, without a copy."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return lambda result: result
    if hasattr(array, "__array_namespace__"):
        library = array.__array_namespace__()
    else:
        library = sys.modules[type(array).__module__.split(".")[0]]
    from_dlpack: Callable[[Any], Any] | None = getattr(library, "from_dlpack", None)
    if from_dlpack is None:
        raise InputError(
            "unsupported",
            None,
            "results cannot be returned as {given}, whose library has no from_dlpack; pass NumPy arrays: "
            "np.from_dlpack(x)",
            given=type(array).__name__,
        )
    return from_dlpack
