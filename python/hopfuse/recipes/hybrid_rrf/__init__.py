"""HybridRRF: lexical, dense and graph retrieval, fused by weighted reciprocal ranks, with a prior."""

from .config import HybridRRFConfig
from .core import HybridRRF

__all__ = ["HybridRRF", "HybridRRFConfig"]
