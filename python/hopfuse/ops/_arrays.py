"""Results as arrays of the library that the input came from (DLPack)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


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
