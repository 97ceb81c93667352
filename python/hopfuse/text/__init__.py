"""Text as readers see it: spellings of a word that are equal, its words in any script, and the rules for both.

Names, words, BM25 and metrics read texts and questions by this package alone. May import the errors.
"""

from .folding import FoldedText, fold, fold_with_offsets, in_word, splits_word, unaccented
from .names import (
    SIGNS,
    as_written,
    canonical_key,
    may_stand,
    name_spellings,
    name_stems,
    without_endings,
    without_signs,
)
from .rules import NAME_RULE, RULE, RULES, check_rule
from .scripts import SCRIPTS, UNSPACED, characters, script_of
from .segments import Style, read_words, segment, words_in

__all__ = [
    "NAME_RULE",
    "RULE",
    "RULES",
    "SCRIPTS",
    "SIGNS",
    "UNSPACED",
    "FoldedText",
    "Style",
    "as_written",
    "canonical_key",
    "characters",
    "check_rule",
    "fold",
    "fold_with_offsets",
    "in_word",
    "may_stand",
    "name_spellings",
    "name_stems",
    "read_words",
    "script_of",
    "segment",
    "splits_word",
    "unaccented",
    "without_endings",
    "without_signs",
    "words_in",
]
