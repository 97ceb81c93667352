"""The kernels, loaded for the first vectors: rooms that only read hits import the types without them."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def native() -> Any:
    """Return the native module."""
    from .. import _native

    return _native
