"""Passages by the words of a question: BM25, as one more list for a recipe or for :func:`hopfuse.fuse`."""

from .bm25 import BM25

__all__ = ["BM25"]
