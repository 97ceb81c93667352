"""Retrieval systems: each ranks an index's passages or entities for questions, by vectors, walks, facts and words.

May import ``ops``, ``fusion``, ``index``, ``types`` and the interface of ``encoders``; recipes never import each other.

Examples
--------
>>> import hopfuse as hf
>>> texts = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "The sea."]
>>> index = hf.Index.build(passages=[{"id": name, "text": text} for name, text in zip("abc", texts)])
>>> recipe = hf.recipes.HybridRRF(index, lexical=hf.lexical.FTS5.build(texts))
>>> found = recipe.search(["Who built the engine?"], k=2)
>>> [(hit.id, hit.text) for hit in found[0]]
[('b', 'The Engine was built by Babbage.'), ('a', 'Ada wrote notes on the Engine.')]
"""

from ._parts.config import apply_options
from ._parts.spelling import spelled
from .guided_walk import GuidedWalk, GuidedWalkConfig, GuidedWalkResult
from .hybrid_rrf import HybridRRF, HybridRRFConfig, PlainHybrid, PlainHybridConfig
from .phase_graph.config import PhaseGraphConfig
from .phase_graph.core import PhaseGraph, PhaseGraphResult
from .policy_rag.config import Policy
from .policy_rag.search import PolicyRAG, PolicyRAGResult
from .protocol import AllowScope, Needs, Recipe
from .results import Hit, HitTables, SearchResult, note_data
from .triple_hybrid import TripleHybrid, TripleHybridConfig, TripleHybridResult

__all__ = [
    "RECIPES",
    "AllowScope",
    "GuidedWalk",
    "GuidedWalkConfig",
    "GuidedWalkResult",
    "Hit",
    "HitTables",
    "HybridRRF",
    "HybridRRFConfig",
    "Needs",
    "PhaseGraph",
    "PhaseGraphConfig",
    "PhaseGraphResult",
    "PlainHybrid",
    "PlainHybridConfig",
    "Policy",
    "PolicyRAG",
    "PolicyRAGResult",
    "Recipe",
    "SearchResult",
    "TripleHybrid",
    "TripleHybridConfig",
    "TripleHybridResult",
    "apply_options",
    "note_data",
    "spelled",
]

RECIPES: dict[str, type[Recipe]] = {
    "guided-walk": GuidedWalk,
    "phase-graph": PhaseGraph,
    "policy-rag": PolicyRAG,
    "hybrid-rrf": HybridRRF,
    "plain-hybrid": PlainHybrid,
    "triple-hybrid": TripleHybrid,
}
"""All recipes by their names on the command line."""
