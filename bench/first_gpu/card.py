"""The card, by CuPy: whether there is one, and its free memory."""

from __future__ import annotations

import gc
from typing import Any

import hopfuse as hf

from ..peers.gpu import CupyPeer

BACKEND = "cuda"


def require_card() -> Any:
    """Return CuPy. UnavailableError where it is absent or sees no device."""
    CupyPeer.require()
    import cupy

    return cupy


def about_card() -> dict[str, Any]:
    """Return what hopfuse says of its backend on the card."""
    about: dict[str, Any] = hf.backend_info()["backends"][BACKEND]
    return about


def free_bytes(cupy: Any) -> int:
    """Return the device's free memory by its driver, after all that is not used was given back."""
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    return int(cupy.cuda.Device().mem_info[0])
