"""Float64 oracle of fuse; related methods share a file."""

from .combine import fuse
from .registry import METHODS

__all__ = ["METHODS", "fuse"]
