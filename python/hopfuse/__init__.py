"""hopfuse: batched scoring kernels for graph + vector retrieval."""

from . import errors, fusion, recipes, reference
from .backends import explain
from .index import Index
from .ops import calibrate, dense_topk, fuse, ppr, ppr_topk
from .types import Corpus, Graph, Hits, PprHits, PprResult

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "Graph",
    "Hits",
    "Index",
    "PprHits",
    "PprResult",
    "calibrate",
    "dense_topk",
    "errors",
    "explain",
    "fuse",
    "fusion",
    "ppr",
    "ppr_topk",
    "recipes",
    "reference",
]
