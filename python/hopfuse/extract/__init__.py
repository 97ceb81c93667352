"""Extract entities, facts and words from texts, build a graph of them, and find entities in questions.

May import the public API; spaCy, pyahocorasick, PyStemmer and bm25s are imported when they are used.
"""

from ..text import canonical_key
from .abbreviations import abbreviations
from .endpoint_reader import EndpointReader
from .extraction import Extraction, Words
from .facts import Fact, FactConflict
from .function_words import ENGLISH as FUNCTION_WORDS
from .gazetteer import Gazetteer, Match
from .linker import EntityLinker
from .memory import Memory
from .memory_build import build_memory
from .openie import read_openie
from .question_matcher import QuestionMatcher
from .relations import Predicates
from .spacy_reader import SpacyReader
from .spoken import Spoken
from .synonym_bounds import synonym_bounds, synonym_pairs
from .synonyms import similar_pairs
from .triple_files import described, read_triples
from .words import Word, WordMatcher, WordReader

__all__ = [
    "FUNCTION_WORDS",
    "EndpointReader",
    "EntityLinker",
    "Extraction",
    "Fact",
    "FactConflict",
    "Gazetteer",
    "Match",
    "Memory",
    "Predicates",
    "QuestionMatcher",
    "SpacyReader",
    "Spoken",
    "Word",
    "WordMatcher",
    "WordReader",
    "Words",
    "abbreviations",
    "build_memory",
    "canonical_key",
    "described",
    "read_openie",
    "read_triples",
    "similar_pairs",
    "synonym_bounds",
    "synonym_pairs",
]
