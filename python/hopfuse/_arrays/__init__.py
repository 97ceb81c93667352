"""Array helpers: other libraries' arrays, bfloat16, memory maps, compressed rows, filters, vectors.

May import ``errors`` and the native module.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def native() -> Any:
    """Return the native module, loaded on first use, so that importing the types does not load the kernels."""
    from .. import _native

    return _native
