"""Fusion of ranked lists: one method a file, all behind :func:`fuse`."""

from .combine import fuse
from .registry import METHODS

__all__ = ["METHODS", "fuse"]
