"""Load the native module on first use, so that importing the types does not load the kernels."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def native() -> Any:
    """Return the native module."""
    from .. import _native

    return _native
