"""From texts to the entities that they mention."""

from .gazetteer import Gazetteer, Match

__all__ = ["Gazetteer", "Match"]
