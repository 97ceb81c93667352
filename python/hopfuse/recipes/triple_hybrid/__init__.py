"""TripleHybrid: entities by their vectors and by facts whose labels resemble the question (Sørensen-Dice)."""

from .config import TripleHybridConfig
from .search import TripleHybrid, TripleHybridResult

__all__ = ["TripleHybrid", "TripleHybridConfig", "TripleHybridResult"]
