"""Offline scoring: a plan of parts, made by any number of processes, joined to one result.

docs/offline.md has the contract. A part's bytes depend on the plan alone, so a part that is made twice is the same
part, and a run that was killed goes on where it was.
"""

from .check import check_rows
from .folder import Folder
from .merge import Merged, merge
from .parts import Output
from .plan import Plan, make_plan, open_index
from .run import Made, run, verify
from .scoring import RecipeScorer, Scorer

__all__ = [
    "Folder",
    "Made",
    "Merged",
    "Output",
    "Plan",
    "RecipeScorer",
    "Scorer",
    "check_rows",
    "make_plan",
    "merge",
    "open_index",
    "run",
    "verify",
]
