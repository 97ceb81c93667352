"""TripleHybrid: facts of a knowledge graph beside dense text, the Dice-Sørensen hybrid."""

from .config import TripleHybridConfig
from .search import TripleHybrid, TripleHybridResult

__all__ = ["TripleHybrid", "TripleHybridConfig", "TripleHybridResult"]
