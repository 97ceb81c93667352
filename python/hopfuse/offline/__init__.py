"""Offline scoring: a plan of parts, which any number of processes make, and which are merged into one result.

The room imports the public API, and Ray in the package ``ray`` alone. docs/offline.md has the contract: a part's bytes
depend on the plan alone, so making a part twice gives the same part, and a killed run can be continued.
"""

from .database import HitsTable, write_file, write_run
from .folder import Folder
from .merge import MergeCounts, merge
from .parts import Output
from .plan import Plan, check_rows, make_plan, open_index, rows_a_part
from .run import RunCounts, run, verify
from .scoring import RetrieverScorer, Scorer

__all__ = [
    "Folder",
    "HitsTable",
    "MergeCounts",
    "Output",
    "Plan",
    "RetrieverScorer",
    "RunCounts",
    "Scorer",
    "check_rows",
    "make_plan",
    "merge",
    "open_index",
    "rows_a_part",
    "run",
    "verify",
    "write_file",
    "write_run",
]
