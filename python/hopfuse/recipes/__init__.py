"""Whole retrieval systems over the same kernels, each readable top to bottom."""

from ._ising import Ising
from ._policy import Policy
from .hybrid_rrf import HybridRRF, HybridRRFResult
from .phase_graph import PhaseGraph, PhaseGraphResult
from .policy_rag import PolicyRAG, PolicyRAGResult
from .triple_hybrid import TripleHybrid, TripleHybridResult

__all__ = [
    "HybridRRF",
    "HybridRRFResult",
    "Ising",
    "PhaseGraph",
    "PhaseGraphResult",
    "Policy",
    "PolicyRAG",
    "PolicyRAGResult",
    "TripleHybrid",
    "TripleHybridResult",
]
