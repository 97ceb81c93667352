"""Whole retrieval systems over the same kernels, each readable top to bottom."""

from .phase_graph import PhaseGraph, PhaseGraphResult
from .triple_hybrid import TripleHybrid, TripleHybridResult

__all__ = ["PhaseGraph", "PhaseGraphResult", "TripleHybrid", "TripleHybridResult"]
