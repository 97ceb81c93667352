"""The parts of an index: of each, its sections, how they are made, loaded, taken for some passages and described."""

from . import encoder, entities, facts, graph, passages, terms, words

__all__ = ["encoder", "entities", "facts", "graph", "passages", "terms", "words"]
