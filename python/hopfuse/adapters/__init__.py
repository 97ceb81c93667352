"""Offer other systems' interfaces over hopfuse's kernels."""

from . import dialects, igraph

__all__ = ["dialects", "igraph"]
