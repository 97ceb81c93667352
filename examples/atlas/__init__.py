"""The atlas: facts about real places as passages, a typed graph and multi-hop questions."""

from .build import Atlas, build_atlas
from .questions import Question

__all__ = ["Atlas", "Question", "build_atlas"]
