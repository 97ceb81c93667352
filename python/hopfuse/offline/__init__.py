"""Offline scoring: a plan of parts, which any number of processes make, and which are merged into one result.

The package imports the public API; only its package ``ray`` imports Ray. The contract is in docs/offline.md: a part's
bytes depend only on the plan, so making a part twice gives the same part, and a killed run can be continued.
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
