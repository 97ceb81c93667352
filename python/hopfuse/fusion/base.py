"""What every fusion method says of itself."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


def is_finite_float32(value: Any) -> bool:
    """A real number, not a bool, that float32 can hold."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and abs(float(value)) <= float(np.finfo(np.float32).max)


class FusionMethod:
    """Base of the method objects. A method is a frozen dataclass of its options in a file of its own.

    Examples
    --------
    >>> from hopfuse import fusion
    >>> [method for method in fusion.METHODS if fusion.METHODS[method].weighted]
    ['boltzmann', 'linear', 'rrf']
    """

    name: ClassVar[str]
    #: What calibration=None means.
    default_calibration: ClassVar[str] = "pit"
    #: Calibrations that make sense; None: every one.
    calibrations: ClassVar[tuple[str, ...] | None] = None
    #: Calibrated scores below 0 are an error.
    needs_nonnegative: ClassVar[bool] = False
    #: The method reads weights=.
    weighted: ClassVar[bool] = True

    def default_weights(self, num_lists: int) -> NDArray[np.float32]:
        """Weights where the call gives none: (L,)."""
        return np.full(num_lists, 1.0 / num_lists, np.float32)

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        """The options as the kernel's header lays them out."""
        return np.zeros(1, np.float32)
