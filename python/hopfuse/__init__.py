"""Batched scoring kernels for graph and vector retrieval.

This module holds the public names, each loaded on first use. It may import every room but ``cli``, ``serve``,
``offline`` and ``client``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors

if TYPE_CHECKING:
    from . import (
        adapters,
        diagnose,
        encoders,
        evaluate,
        extract,
        fusion,
        lexical,
        recipes,
        reference,
        report,
        stores,
        types,
    )
    from .backends import backend_info
    from .backends.cancellation import CancelToken, cancellation
    from .index import Index, LiveIndex, Where, where
    from .ops.calibration import calibrate
    from .ops.calibrator import Calibrator
    from .ops.capture import Captured, capture
    from .ops.dense import dense_above, dense_topk
    from .ops.device import (
        MemoryEstimate,
        SelfTest,
        estimate_device_memory,
        free_device_memory,
        selftest,
    )
    from .ops.dice import dice_scores
    from .ops.fusion import fuse
    from .ops.ising import ising_rerank
    from .ops.ppr import ppr, ppr_topk
    from .ops.projection import project, project_topk
    from .ops.seeding import add_entity_seeds, add_passage_seeds, boost_weights, cover_seeds
    from .ops.similarity import similarity_weights
    from .retriever import Retriever
    from .types import (
        Candidates,
        Corpus,
        Facts,
        Graph,
        Hits,
        Incidence,
        LabelSets,
        PprHits,
        PprResult,
        Seeds,
    )

__version__ = "0.1.0"

__all__ = [
    "Calibrator",
    "CancelToken",
    "Candidates",
    "Captured",
    "Corpus",
    "Facts",
    "Graph",
    "Hits",
    "Incidence",
    "Index",
    "LabelSets",
    "LiveIndex",
    "MemoryEstimate",
    "PprHits",
    "PprResult",
    "Retriever",
    "Seeds",
    "SelfTest",
    "Where",
    "adapters",
    "add_entity_seeds",
    "add_passage_seeds",
    "backend_info",
    "boost_weights",
    "calibrate",
    "cancellation",
    "capture",
    "cover_seeds",
    "dense_above",
    "dense_topk",
    "diagnose",
    "dice_scores",
    "encoders",
    "errors",
    "estimate_device_memory",
    "evaluate",
    "extract",
    "free_device_memory",
    "fuse",
    "fusion",
    "ising_rerank",
    "lexical",
    "ppr",
    "ppr_topk",
    "project",
    "project_topk",
    "recipes",
    "reference",
    "report",
    "selftest",
    "similarity_weights",
    "stores",
    "types",
    "where",
]

#: The module that defines each public name; None if the name is itself a module.
_HOMES: dict[str, str | None] = {
    **dict.fromkeys(
        (
            "adapters",
            "diagnose",
            "encoders",
            "evaluate",
            "extract",
            "fusion",
            "lexical",
            "recipes",
            "reference",
            "report",
            "stores",
            "types",
        )
    ),
    **dict.fromkeys(
        ("Candidates", "Corpus", "Facts", "Graph", "Hits", "Incidence", "LabelSets", "PprHits", "PprResult", "Seeds"),
        "types",
    ),
    **dict.fromkeys(
        ("MemoryEstimate", "SelfTest", "estimate_device_memory", "free_device_memory", "selftest"), "ops.device"
    ),
    **dict.fromkeys(("Captured", "capture"), "ops.capture"),
    **dict.fromkeys(("ppr", "ppr_topk"), "ops.ppr"),
    **dict.fromkeys(("project", "project_topk"), "ops.projection"),
    **dict.fromkeys(("add_entity_seeds", "add_passage_seeds", "boost_weights", "cover_seeds"), "ops.seeding"),
    "Calibrator": "ops.calibrator",
    "Retriever": "retriever",
    **dict.fromkeys(("CancelToken", "cancellation"), "backends.cancellation"),
    **dict.fromkeys(("Index", "LiveIndex", "Where", "where"), "index"),
    "calibrate": "ops.calibration",
    **dict.fromkeys(("dense_above", "dense_topk"), "ops.dense"),
    "dice_scores": "ops.dice",
    "backend_info": "backends",
    "fuse": "ops.fusion",
    "ising_rerank": "ops.ising",
    "similarity_weights": "ops.similarity",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562), so that importing hopfuse stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
