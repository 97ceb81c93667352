"""PolicyRAG: retrieval over a graph of facts, controlled by an editable policy."""

from .config import Policy
from .search import PolicyRAG, PolicyRAGResult

__all__ = ["Policy", "PolicyRAG", "PolicyRAGResult"]
