"""PhaseGraph: dense retrieval and a walk over the entity graph, fused as Boltzmann probabilities."""

from .config import PhaseGraphConfig
from .core import PhaseGraph, PhaseGraphResult

__all__ = ["PhaseGraph", "PhaseGraphConfig", "PhaseGraphResult"]
