"""hopfuse: batched scoring kernels for graph + vector retrieval."""

from . import errors
from .types import Corpus, Graph, Hits, PprHits, PprResult

__all__ = ["Corpus", "Graph", "Hits", "PprHits", "PprResult", "errors"]
