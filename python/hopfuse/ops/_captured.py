"""Mark the calls inside a captured core, whose options must hold for any batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..errors import InputError

_thread = threading.local()


def is_inside() -> bool:
    return getattr(_thread, "depth", 0) > 0


def inside(core: Callable[..., Any]) -> Callable[..., Any]:
    """Return the core, marked while it runs."""

    @wraps(core)
    def run(*arrays: Any) -> Any:
        _thread.depth = getattr(_thread, "depth", 0) + 1
        try:
            return core(*arrays)
        finally:
            _thread.depth -= 1

    return run


def refuse_per_query(name: str) -> None:
    """Refuse an option for each query: a core is recorded for other batches than it is called with."""
    if is_inside():
        raise InputError(
            f"{name} is given for each query inside a captured core, which must do for any batch; give it once for "
            "all, or call the op without capture"
        )
