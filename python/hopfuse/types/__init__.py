"""Frozen data types that operations take and return; they may import ``errors``, the checks and ``_arrays``."""

from .candidates import Candidates
from .corpus import Corpus
from .edge_statements import EdgeStatements
from .facts import Facts
from .graph import Graph
from .hits import Hits
from .incidence import Incidence
from .label_sets import LabelSets
from .seeds import Seeds
from .term_matrix import TermMatrix
from .walks import LocalWalks, PprHits, PprResult

__all__ = [
    "Candidates",
    "Corpus",
    "EdgeStatements",
    "Facts",
    "Graph",
    "Hits",
    "Incidence",
    "LabelSets",
    "LocalWalks",
    "PprHits",
    "PprResult",
    "Seeds",
    "TermMatrix",
]
