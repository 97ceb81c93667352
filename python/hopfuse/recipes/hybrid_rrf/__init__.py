"""HybridRRF: lexical, dense and graph retrieval, fused by weighted reciprocal ranks, with a prior."""

from .config import HybridRRFConfig, PlainHybridConfig
from .core import HybridRRF, PlainHybrid

__all__ = ["HybridRRF", "HybridRRFConfig", "PlainHybrid", "PlainHybridConfig"]
