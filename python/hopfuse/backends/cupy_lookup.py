"""Whether CuPy is installed, without importing it."""

from __future__ import annotations

from importlib.util import find_spec

INSTALL = (
    "install it with: pip install 'hopfuse[cuda13]' for a driver of CUDA 13 or later, 'hopfuse[cuda12]' for CUDA 12"
)


def no_cupy() -> str | None:
    """Why there is no CuPy; None if there is. A mere folder of that name, say in the working directory, is none."""
    try:
        found = find_spec("cupy")
    except ValueError:  # a module of that name without a spec
        found = None
    if found is not None and found.origin is not None:
        return None
    return f"backend='cuda' needs CuPy, which is not installed; {INSTALL}"
