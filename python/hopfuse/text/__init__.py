"""Text as readers see it: spellings of a word that are equal, its words in any script, and the rules for both.

Names, words, BM25 and metrics read texts and questions only by this package. May import the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .folding import *  # noqa: F403
    from .languages import *  # noqa: F403
    from .names import *  # noqa: F403
    from .rules import *  # noqa: F403
    from .segments import *  # noqa: F403

# Tables and expressions take longer to load than the rest of an import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "folding": (
            "SCRIPTS UNSPACED FoldedText characters fold fold_with_offsets in_word script_of splits_word unaccented"
        ),
        "languages": (
            "LANGUAGES common_words function_words is_told language_named language_of question_words resembles "
            "shares_of"
        ),
        "names": (
            "SIGNS as_written canonical_key cyrillic_cases cyrillic_names finnish_cases finnish_name joined may_stand "
            "name_spellings prefix_before without_signs"
        ),
        "segments": "Style read_words runs_in segment spaced words_in",
        "rules": "NAME_RULE RULE RULES check_rule",
    },
)
