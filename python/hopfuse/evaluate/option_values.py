"""Values of options: which are numbers, and NumPy's scalars as Python's."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any, TypeGuard

import numpy as np


def is_number(value: Any) -> TypeGuard[float]:
    """True for a finite real number that is not a bool.

    Examples
    --------
    >>> import numpy as np
    >>> is_number(0.5), is_number(np.int64(3)), is_number("auto"), is_number(True), is_number(None)
    (True, True, False, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def as_number(value: float) -> int | float:
    """A number as an int or a float.

    Examples
    --------
    >>> import numpy as np
    >>> as_number(np.int64(3)), as_number(np.float32(0.5))
    (3, 0.5)
    """
    bare = plain(value)
    return bare if isinstance(bare, int) else float(bare)


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that it is; anything else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.float64(0.5)), plain("auto")
    (0.5, 'auto')
    """
    return value.item() if isinstance(value, np.generic) else value


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with plain values.

    Examples
    --------
    >>> import numpy as np
    >>> plain_options({"method": "rrf", "pool": np.int64(30)})
    {'method': 'rrf', 'pool': 30}
    """
    return {name: plain(value) for name, value in options.items()}
