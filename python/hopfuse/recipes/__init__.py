"""Whole retrieval systems over the same kernels, each readable top to bottom."""

from ._ising import Ising
from .hybrid_rrf import HybridRRF, HybridRRFResult
from .phase_graph import PhaseGraph, PhaseGraphResult
from .triple_hybrid import TripleHybrid, TripleHybridResult

__all__ = [
    "HybridRRF",
    "HybridRRFResult",
    "Ising",
    "PhaseGraph",
    "PhaseGraphResult",
    "TripleHybrid",
    "TripleHybridResult",
]
