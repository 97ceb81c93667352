"""GuidedWalk: a walk over the entity graph that the question steers, from its own entities and those of an answer."""

from .config import GuidedWalkConfig
from .core import GuidedWalk, GuidedWalkResult, guided_walk
from .shares import SecondShares

__all__ = ["GuidedWalk", "GuidedWalkConfig", "GuidedWalkResult", "SecondShares", "guided_walk"]
