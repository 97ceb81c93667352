"""Extract entities, facts and words from texts, build a graph of them, and find entities in questions.

May import the public API; spaCy, pyahocorasick, PyStemmer and bm25s are imported when they are used.
"""

from ..text import canonical_key
from ._evidence import ENGLISH as FUNCTION_WORDS
from .building import PassageLanguages
from .endpoint_reader import EndpointReader
from .extraction import Extraction, Words
from .fact_files import described, read_openie, read_triples
from .gazetteer import Gazetteer, Match
from .linker import EntityLinker
from .memory import Fact, FactConflict, Memory
from .memory_build import build_memory
from .question_matcher import QuestionMatcher
from .relations import Predicates
from .spacy_reader import SpacyReader
from .synonyms import abbreviations, similar_pairs, synonym_bounds, synonym_pairs
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
    "PassageLanguages",
    "Predicates",
    "QuestionMatcher",
    "SpacyReader",
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
