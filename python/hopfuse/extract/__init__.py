"""From texts to the entities and facts that they state, and from extracted facts to a memory of typed edges."""

from .abbreviations import abbreviations
from .canonical import canonical_key
from .endpoint_reader import EndpointReader
from .extraction import Extraction
from .gazetteer import Gazetteer, Match
from .memory import Fact, Memory, build_memory
from .openie import read_openie
from .relations import Predicates
from .settling import Settled
from .spacy_reader import SpacyReader
from .synonyms import similar_pairs
from .triple_files import described, read_triples

__all__ = [
    "EndpointReader",
    "Extraction",
    "Fact",
    "Gazetteer",
    "Match",
    "Memory",
    "Predicates",
    "Settled",
    "SpacyReader",
    "abbreviations",
    "build_memory",
    "canonical_key",
    "described",
    "read_openie",
    "read_triples",
    "similar_pairs",
]
