"""The public operations: validate, hand to a backend, wrap."""

from .dense import dense_topk
from .fusion import calibrate, fuse
from .ppr import ppr, ppr_topk

__all__ = ["calibrate", "dense_topk", "fuse", "ppr", "ppr_topk"]
