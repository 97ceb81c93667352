"""Other systems' interfaces over hopfuse's kernels."""

from . import igraph

__all__ = ["igraph"]
