"""Diagnose whether a graph helps: its structure, both legs, stability under rewording, and recipes side by side.

Imports the public API and ``evaluate``; SciPy is imported when it is first needed.
"""

from .aliases import substitute_aliases
from .cached_encoder import CachedEncoder
from .comparison import RecipeComparison, compare_recipes
from .diagnosis import Legs, diagnose, search_legs
from .graph import MassSpread, connected_components, hub_nodes, mass_spread, shared_names
from .legs import error_correlation, overlap, pool_loss, rank_biased_overlap
from .rankings import RANKINGS, Questions, Ranking, by_mention
from .rewriting import Rewriting, paraphrase
from .rewritings import rewritings
from .stability import RankStability, rank_stability, stability_rows

__all__ = [
    "RANKINGS",
    "CachedEncoder",
    "Legs",
    "MassSpread",
    "Questions",
    "RankStability",
    "Ranking",
    "RecipeComparison",
    "Rewriting",
    "by_mention",
    "compare_recipes",
    "connected_components",
    "diagnose",
    "error_correlation",
    "hub_nodes",
    "mass_spread",
    "overlap",
    "paraphrase",
    "pool_loss",
    "rank_biased_overlap",
    "rank_stability",
    "rewritings",
    "search_legs",
    "shared_names",
    "stability_rows",
    "substitute_aliases",
]
