"""Fold names and what is compared with them, by the rule of names."""

from __future__ import annotations

from ..text import NAME_RULE, FoldedText, splits_word
from ..text import fold as fold_text
from ..text import fold_with_offsets as fold_text_with_offsets

__all__ = ["FoldedText", "fold", "fold_with_offsets", "splits_word"]


def fold(text: str, case_sensitive: bool) -> str:
    """Return a text as names are compared."""
    return fold_text(text, rule=NAME_RULE, case_sensitive=case_sensitive)


def fold_with_offsets(text: str, case_sensitive: bool) -> FoldedText:
    """Fold a text in the same way, with offsets."""
    return fold_text_with_offsets(text, rule=NAME_RULE, case_sensitive=case_sensitive)
