"""Batched scoring kernels for graph and vector retrieval.

This module holds the public names, each loaded on first use. It may import every package but ``cli``, ``serve``,
``offline`` and ``client``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import errors as errors
from ._lazy import lazy_names

if sys.platform == "win32":  # CMakeLists.txt has the same sentence
    raise ImportError(
        "hopfuse runs on Linux and on macOS 13.3 or later with Apple silicon, not on Windows or Intel Macs: on these, "
        "install it in WSL 2 or in a Linux container."
    )

if TYPE_CHECKING:
    from . import adapters as adapters
    from . import diagnose as diagnose
    from . import encoders as encoders
    from . import evaluate as evaluate
    from . import extract as extract
    from . import fusion as fusion
    from . import lexical as lexical
    from . import recipes as recipes
    from . import reference as reference
    from . import report as report
    from . import stores as stores
    from . import types as types
    from .backends import backend_info as backend_info
    from .backends.cancellation import CancelToken as CancelToken
    from .backends.cancellation import cancellation as cancellation
    from .index import Index as Index
    from .index import LiveIndex as LiveIndex
    from .index import Where as Where
    from .index import where as where
    from .ops.calibration import calibrate as calibrate
    from .ops.calibrator import Calibrator as Calibrator
    from .ops.capture import Captured as Captured
    from .ops.capture import capture as capture
    from .ops.dense import dense_above as dense_above
    from .ops.dense import dense_topk as dense_topk
    from .ops.device import MemoryEstimate as MemoryEstimate
    from .ops.device import SelfTest as SelfTest
    from .ops.device import estimate_device_memory as estimate_device_memory
    from .ops.device import free_device_memory as free_device_memory
    from .ops.device import selftest as selftest
    from .ops.dice import dice_scores as dice_scores
    from .ops.fusion import fuse as fuse
    from .ops.ising import ising_rerank as ising_rerank
    from .ops.ppr import ppr as ppr
    from .ops.ppr import ppr_topk as ppr_topk
    from .ops.projection import project as project
    from .ops.projection import project_topk as project_topk
    from .ops.seeding import add_entity_seeds as add_entity_seeds
    from .ops.seeding import add_passage_seeds as add_passage_seeds
    from .ops.seeding import boost_weights as boost_weights
    from .ops.seeding import cover_seeds as cover_seeds
    from .ops.similarity import similarity_weights as similarity_weights
    from .retriever import Retriever as Retriever
    from .types import Candidates as Candidates
    from .types import Corpus as Corpus
    from .types import Facts as Facts
    from .types import Graph as Graph
    from .types import Hits as Hits
    from .types import Incidence as Incidence
    from .types import LabelSets as LabelSets
    from .types import PprHits as PprHits
    from .types import PprResult as PprResult
    from .types import Seeds as Seeds

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "": "adapters diagnose encoders errors evaluate extract fusion lexical recipes reference report stores types",
        "backends": "backend_info",
        "backends.cancellation": "CancelToken cancellation",
        "index": "Index LiveIndex Where where",
        "ops.calibration": "calibrate",
        "ops.calibrator": "Calibrator",
        "ops.capture": "Captured capture",
        "ops.dense": "dense_above dense_topk",
        "ops.device": "MemoryEstimate SelfTest estimate_device_memory free_device_memory selftest",
        "ops.dice": "dice_scores",
        "ops.fusion": "fuse",
        "ops.ising": "ising_rerank",
        "ops.ppr": "ppr ppr_topk",
        "ops.projection": "project project_topk",
        "ops.seeding": "add_entity_seeds add_passage_seeds boost_weights cover_seeds",
        "ops.similarity": "similarity_weights",
        "retriever": "Retriever",
        "types": "Candidates Corpus Facts Graph Hits Incidence LabelSets PprHits PprResult Seeds",
    },
    outermost=True,
)
