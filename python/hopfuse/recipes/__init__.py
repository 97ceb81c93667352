"""Whole retrieval systems over the same kernels, each readable top to bottom."""

from .phase_graph import PhaseGraph, PhaseGraphResult

__all__ = ["PhaseGraph", "PhaseGraphResult"]
