"""Track whether a captured core is running, where options must be valid for any batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..errors import InputError

_thread = threading.local()


def in_captured_core() -> bool:
    return getattr(_thread, "depth", 0) > 0


def track_core(core: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a core so that :func:`in_captured_core` is true on its thread while it runs."""

    @wraps(core)
    def run(*arrays: Any) -> Any:
        _thread.depth = getattr(_thread, "depth", 0) + 1
        try:
            return core(*arrays)
        finally:
            _thread.depth -= 1

    return run


def refuse_per_query(name: str) -> None:
    """Raise if an option is given per query inside a captured core, which is replayed for other batches."""
    if in_captured_core():
        raise InputError(
            "UNSORTED",
            name,
            "{field} is given per query inside a captured core, which must work for any batch; give one "
            "value for all queries, or call the op without capture",
        )
