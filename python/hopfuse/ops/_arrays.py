"""Arrays of any library in, arrays of the same library out (DLPack)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


def to_numpy(array: Any, name: str) -> NDArray[Any]:
    """A NumPy view of an array on the CPU, or of a list; an array elsewhere is an error."""
    if isinstance(array, np.ndarray):
        return array
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


def same_library(array: Any) -> Callable[[NDArray[Any]], Any]:
    """What turns a NumPy result into an array of the library that ``array`` came from, without a copy."""
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
