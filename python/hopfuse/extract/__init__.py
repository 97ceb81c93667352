"""From texts to the entities that they mention, and from extracted facts to a memory of typed edges."""

from .abbreviations import abbreviations
from .canonical import canonical_key
from .extraction import Extraction
from .gazetteer import Gazetteer, Match
from .memory import Fact, Memory, build_memory
from .openie import read_openie
from .relations import Predicates
from .settling import Settled
from .synonyms import similar_pairs
from .triple_files import described, read_triples

__all__ = [
    "Extraction",
    "Fact",
    "Gazetteer",
    "Match",
    "Memory",
    "Predicates",
    "Settled",
    "abbreviations",
    "build_memory",
    "canonical_key",
    "described",
    "read_openie",
    "read_triples",
    "similar_pairs",
]
