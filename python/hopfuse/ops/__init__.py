"""The public operations: validate, hand to a backend, wrap."""

from .calibrator import Calibrator
from .capture import Captured, capture
from .dense import dense_topk
from .fusion import calibrate, fuse
from .memory import MemoryEstimate, memory_estimate, release
from .ppr import ppr, ppr_topk
from .seeding import seed_hits

__all__ = [
    "Calibrator",
    "Captured",
    "MemoryEstimate",
    "calibrate",
    "capture",
    "dense_topk",
    "fuse",
    "memory_estimate",
    "ppr",
    "ppr_topk",
    "release",
    "seed_hits",
]
