"""Text as readers see it: spellings of a word that are equal, its words in any script, and the rules for both.

Names, words, BM25 and metrics read texts and questions by this package alone. May import the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_names
from .rules import NAME_RULE, RULE, RULES, check_rule

if TYPE_CHECKING:
    from .folding import (
        SCRIPTS,
        UNSPACED,
        FoldedText,
        characters,
        fold,
        fold_with_offsets,
        in_word,
        script_of,
        splits_word,
        unaccented,
    )
    from .languages import (
        LANGUAGES,
        common_words,
        function_words,
        is_told,
        language_named,
        language_of,
        question_words,
        resembles,
        shares_of,
    )
    from .names import (
        SIGNS,
        as_written,
        canonical_key,
        cyrillic_cases,
        cyrillic_names,
        finnish_cases,
        finnish_name,
        joined,
        may_stand,
        name_spellings,
        prefix_before,
        without_signs,
    )
    from .segments import Style, read_words, runs_in, segment, spaced, words_in

__all__ = [
    "LANGUAGES",
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
    "common_words",
    "cyrillic_cases",
    "cyrillic_names",
    "finnish_cases",
    "finnish_name",
    "fold",
    "fold_with_offsets",
    "function_words",
    "in_word",
    "is_told",
    "joined",
    "language_named",
    "language_of",
    "may_stand",
    "name_spellings",
    "prefix_before",
    "question_words",
    "read_words",
    "resembles",
    "runs_in",
    "script_of",
    "segment",
    "shares_of",
    "spaced",
    "splits_word",
    "unaccented",
    "without_signs",
    "words_in",
]

_NAMES = {
    "folding": (
        "SCRIPTS UNSPACED FoldedText characters fold fold_with_offsets in_word script_of splits_word unaccented"
    ),
    "languages": (
        "LANGUAGES common_words function_words is_told language_named language_of question_words resembles shares_of"
    ),
    "names": (
        "SIGNS as_written canonical_key cyrillic_cases cyrillic_names finnish_cases finnish_name joined may_stand "
        "name_spellings prefix_before without_signs"
    ),
    "segments": "Style read_words runs_in segment spaced words_in",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)[:2]
