"""Diagnose an index: which recipe to use, whether its graph helps, what is wrong with its data, and stability.

Imports the public API and ``evaluate``; SciPy is imported when it is first needed.
"""

from ..text import language_of, script_of
from .aliases import rewritings, substitute_aliases
from .comparison import CachedEncoder, RecipeComparison, compare_recipes
from .diagnosis import Legs, diagnose, search_legs
from .faults import Fault, find_faults
from .indication import JUDGED, Indication, indicate, judge, over_all, searchable
from .measures import (
    MassSpread,
    connected_components,
    error_correlation,
    hub_nodes,
    mass_spread,
    overlap,
    pool_loss,
    rank_biased_overlap,
    shared_names,
)
from .rankings import RANKINGS, Questions, Ranking, by_mention
from .rewriting import Rewriting, paraphrase
from .samples import Sample, drawn_rows, one_passage_sample, two_passage_sample
from .similar_names import LookAlikes, look_alikes
from .stability import RankStability, rank_stability, stability_rows
from .verdict import Difference, Figures, GraphWorth, Verdict, graph_worth, verdict

__all__ = [
    "JUDGED",
    "RANKINGS",
    "CachedEncoder",
    "Difference",
    "Fault",
    "Figures",
    "GraphWorth",
    "Indication",
    "Legs",
    "LookAlikes",
    "MassSpread",
    "Questions",
    "RankStability",
    "Ranking",
    "RecipeComparison",
    "Rewriting",
    "Sample",
    "Verdict",
    "by_mention",
    "compare_recipes",
    "connected_components",
    "diagnose",
    "drawn_rows",
    "error_correlation",
    "find_faults",
    "graph_worth",
    "hub_nodes",
    "indicate",
    "judge",
    "language_of",
    "look_alikes",
    "mass_spread",
    "one_passage_sample",
    "over_all",
    "overlap",
    "paraphrase",
    "pool_loss",
    "rank_biased_overlap",
    "rank_stability",
    "rewritings",
    "script_of",
    "search_legs",
    "searchable",
    "shared_names",
    "stability_rows",
    "substitute_aliases",
    "two_passage_sample",
    "verdict",
]
