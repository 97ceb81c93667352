"""Arrays of any library on the CPU, and lists, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

_CPU_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost


def is_on_device(array: Any) -> bool:
    """Whether an array is in the memory of a GPU, by ``__cuda_array_interface__`` or DLPack."""
    if isinstance(array, np.ndarray | list | tuple | dict):
        return False
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) not in _CPU_DEVICES
    return hasattr(array, "__cuda_array_interface__")


def to_numpy(array: Any, name: str) -> NDArray[Any]:
    """A NumPy view of an array on the CPU, or of a list; an array elsewhere is an error."""
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
    """As float64: the array itself where it is that and has no NaN; signalling NaNs become quiet without a warning.

    Examples
    --------
    >>> from hopfuse.types.arrays import to_float64
    >>> to_float64(np.array([1, 2]))
    array([1., 2.])
    """
    with np.errstate(invalid="ignore"):  # whoever asks refuses NaN, and says where it is
        wide = array.astype(np.float64, copy=False)
        missing = np.isnan(wide)
        return np.where(missing, np.nan, wide) if missing.any() else wide
