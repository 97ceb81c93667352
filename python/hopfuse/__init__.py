"""hopfuse: batched scoring kernels for graph + vector retrieval."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors, fusion
from .backends import explain
from .ops import (
    Calibrator,
    Captured,
    MemoryEstimate,
    calibrate,
    capture,
    dense_topk,
    fuse,
    memory_estimate,
    ppr,
    ppr_topk,
    release,
    seed_hits,
)
from .types import Corpus, Graph, Hits, PprHits, PprResult, Seeds

if TYPE_CHECKING:
    from . import adapters, encoders, evaluate, extract, lexical, recipes, reference
    from .backends.selftest import SelfTest, selftest
    from .index import Index

__version__ = "0.1.0"

__all__ = [
    "Calibrator",
    "Captured",
    "Corpus",
    "Graph",
    "Hits",
    "Index",
    "MemoryEstimate",
    "PprHits",
    "PprResult",
    "Seeds",
    "SelfTest",
    "adapters",
    "calibrate",
    "capture",
    "dense_topk",
    "encoders",
    "errors",
    "evaluate",
    "explain",
    "extract",
    "fuse",
    "fusion",
    "lexical",
    "memory_estimate",
    "ppr",
    "ppr_topk",
    "recipes",
    "reference",
    "release",
    "seed_hits",
    "selftest",
]

_ROOMS = ("adapters", "encoders", "evaluate", "extract", "lexical", "recipes", "reference")


def __getattr__(name: str) -> Any:
    """Rooms beyond the kernels load when they are first used, so that ``import hopfuse`` stays fast."""
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in ("SelfTest", "selftest"):
        return getattr(import_module(f"{__name__}.backends.selftest"), name)
    if name == "Index":
        return import_module(f"{__name__}.index").Index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
