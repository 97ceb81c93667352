"""PolicyRAG: retrieval over a graph of facts, controlled by an editable policy, with what its traces rest on."""

from .._parts.facts import MAX_PASSAGES, facts_between
from .._parts.paths import MAX_PATHS, MIN_EXTRA_VISITS, Step, Transitions
from .config import Policy
from .gate import FoundFact, GateDecision, judge, stems
from .graph import TYPES, PolicyGraph
from .path_evidence import PathEvidence, families_between
from .search import PolicyRAG, PolicyRAGResult

__all__ = [
    "MAX_PASSAGES",
    "MAX_PATHS",
    "MIN_EXTRA_VISITS",
    "TYPES",
    "FoundFact",
    "GateDecision",
    "PathEvidence",
    "Policy",
    "PolicyGraph",
    "PolicyRAG",
    "PolicyRAGResult",
    "Step",
    "Transitions",
    "facts_between",
    "families_between",
    "judge",
    "stems",
]
