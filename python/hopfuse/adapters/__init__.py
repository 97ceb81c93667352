"""Interfaces of other libraries over hopfuse's kernels and recipes.

The package imports the public API and :mod:`hopfuse.client`; each module imports its library when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._lazy import ONE_AT_A_TIME

if TYPE_CHECKING:
    from . import dialects, fast_graphrag, hipporag, hipporag_folder, igraph, networkx, networkx_info

__all__ = ["dialects", "fast_graphrag", "hipporag", "hipporag_folder", "igraph", "networkx", "networkx_info"]


def __getattr__(name: str) -> Any:
    """Load a module of the room (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with ONE_AT_A_TIME:
        return import_module(f"{__name__}.{name}")
