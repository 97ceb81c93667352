"""PolicyRAG: retrieval over a graph of facts, controlled by an editable policy."""

from .config import Policy
from .facts import FoundFact
from .gate import Verdict, judge, stems
from .search import PolicyRAG, PolicyRAGResult

__all__ = ["FoundFact", "Policy", "PolicyRAG", "PolicyRAGResult", "Verdict", "judge", "stems"]
