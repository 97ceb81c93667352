"""The atlas: real facts about the world as passages, a typed graph and multi-hop questions."""

from .build import build_atlas
from .model import Atlas, Question

__all__ = ["Atlas", "Question", "build_atlas"]
