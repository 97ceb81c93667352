"""The small frozen types that go in and out of every operation."""

from .corpus import Corpus
from .facts import Facts
from .graph import Graph
from .hits import Hits, PprHits
from .incidence import Incidence
from .label_sets import LabelSets
from .ppr_result import PprResult
from .seeds import Seeds
from .term_matrix import TermMatrix

__all__ = [
    "Corpus",
    "Facts",
    "Graph",
    "Hits",
    "Incidence",
    "LabelSets",
    "PprHits",
    "PprResult",
    "Seeds",
    "TermMatrix",
]
