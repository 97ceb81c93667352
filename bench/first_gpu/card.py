"""The GPU as CuPy reports it: whether there is one, and its free memory."""

from __future__ import annotations

import gc
from typing import Any

import hopfuse as hf

from ..peers.gpu import CupyPeer

BACKEND = "cuda"


def require_card() -> Any:
    """Return CuPy; raise UnavailableError if it is absent or sees no device."""
    CupyPeer.require()
    import cupy

    return cupy


def about_card() -> dict[str, Any]:
    """Return hopfuse's description of its backend on the GPU."""
    about: dict[str, Any] = hf.backend_info()["backends"][BACKEND]
    return about


def free_bytes(cupy: Any) -> int:
    """Return the device's free memory as the driver reports it, after releasing unused memory."""
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    return int(cupy.cuda.Device().mem_info[0])
