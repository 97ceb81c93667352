"""PolicyRAG: retrieval over a graph of facts, by a policy that a person edits."""

from .config import Policy
from .search import PolicyRAG, PolicyRAGResult

__all__ = ["Policy", "PolicyRAG", "PolicyRAGResult"]
