"""hopfuse: batched scoring kernels for graph + vector retrieval."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors

if TYPE_CHECKING:
    from . import adapters, encoders, evaluate, extract, fusion, lexical, recipes, reference, types
    from .backends import explain
    from .backends.selftest import SelfTest, selftest
    from .index import Index
    from .ops.calibration import calibrate
    from .ops.calibrator import Calibrator
    from .ops.capture import Captured, capture
    from .ops.dense import dense_topk
    from .ops.dice import dice_scores
    from .ops.fusion import fuse
    from .ops.ising import ising_rerank
    from .ops.memory import MemoryEstimate, memory_estimate, release
    from .ops.ppr import ppr, ppr_topk
    from .ops.projection import project, project_topk
    from .ops.seeding import seed_hits
    from .types import Corpus, Facts, Graph, Hits, Incidence, LabelSets, PprHits, PprResult, Seeds, Triples

__version__ = "0.1.0"

__all__ = [
    "Calibrator",
    "Captured",
    "Corpus",
    "Facts",
    "Graph",
    "Hits",
    "Incidence",
    "Index",
    "LabelSets",
    "MemoryEstimate",
    "PprHits",
    "PprResult",
    "Seeds",
    "SelfTest",
    "Triples",
    "adapters",
    "calibrate",
    "capture",
    "dense_topk",
    "dice_scores",
    "encoders",
    "errors",
    "evaluate",
    "explain",
    "extract",
    "fuse",
    "fusion",
    "ising_rerank",
    "lexical",
    "memory_estimate",
    "ppr",
    "ppr_topk",
    "project",
    "project_topk",
    "recipes",
    "reference",
    "release",
    "seed_hits",
    "selftest",
    "types",
]

#: Where each public name lives: a module of the package, or None for a room, which is a module itself.
_HOMES: dict[str, str | None] = {
    **dict.fromkeys(
        ("adapters", "encoders", "evaluate", "extract", "fusion", "lexical", "recipes", "reference", "types")
    ),
    **dict.fromkeys(
        ("Corpus", "Facts", "Graph", "Hits", "Incidence", "LabelSets", "PprHits", "PprResult", "Seeds", "Triples"),
        "types",
    ),
    **dict.fromkeys(("MemoryEstimate", "memory_estimate", "release"), "ops.memory"),
    **dict.fromkeys(("Captured", "capture"), "ops.capture"),
    **dict.fromkeys(("SelfTest", "selftest"), "backends.selftest"),
    **dict.fromkeys(("ppr", "ppr_topk"), "ops.ppr"),
    **dict.fromkeys(("project", "project_topk"), "ops.projection"),
    "Calibrator": "ops.calibrator",
    "Index": "index",
    "calibrate": "ops.calibration",
    "dense_topk": "ops.dense",
    "dice_scores": "ops.dice",
    "explain": "backends",
    "fuse": "ops.fusion",
    "ising_rerank": "ops.ising",
    "seed_hits": "ops.seeding",
}


def __getattr__(name: str) -> Any:
    """Names load when they are first used (PEP 562): a program pays for the operations that it calls, and once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
