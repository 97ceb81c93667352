"""Fold Unicode text, with offsets into the original text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple


class FoldedText(NamedTuple):
    """A folded text, with the offsets of its *segments* in the original.

    A segment is the shortest piece of the original that can be folded independently: a character with the marks (and
    conjoining jamo) that follow it. ``start_at[i]`` is the original start of the segment that begins at folded position
    i, and ``end_at[i]`` the original end of the segment that ends after folded position i; both are -1 inside a
    segment.
    """

    text: str
    start_at: Sequence[int]
    end_at: Sequence[int]


def fold(text: str, case_sensitive: bool) -> str:
    """Return a text in NFKC or, with ``case_sensitive=False``, its full case folding in NFKC."""
    text = unicodedata.normalize("NFKC", text)
    return text if case_sensitive else unicodedata.normalize("NFKC", text.casefold())


def fold_with_offsets(text: str, case_sensitive: bool) -> FoldedText:
    """Fold a text in the same way, with offsets."""
    if text.isascii():
        return FoldedText(text if case_sensitive else text.lower(), range(len(text)), range(1, len(text) + 1))
    pieces: list[str] = []
    start_at: list[int] = []
    end_at: list[int] = []
    for start, end in _segments(text):
        piece = fold(text[start:end], case_sensitive)
        inside = [-1] * (len(piece) - 1)
        pieces.append(piece)
        start_at += [start, *inside]
        end_at += [*inside, end]
    return FoldedText("".join(pieces), start_at, end_at)


def in_word(folded: str, at: int) -> bool:
    """Return whether the character at a position, or the one that its mark belongs to, is part of a word."""
    while at > 0 and unicodedata.category(folded[at])[0] == "M":
        at -= 1
    return folded[at].isalnum() or folded[at] == "_"


def splits_word(folded: str, cut: int) -> bool:
    """Return whether a cut before a position separates two characters of a word."""
    return 0 < cut < len(folded) and in_word(folded, cut - 1) and in_word(folded, cut)


def _segments(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for at in range(1, len(text)):
        if not _attaches(text[at]):
            yield start, at
            start = at
    yield start, len(text)


@lru_cache(maxsize=1 << 16)
def _attaches(character: str) -> bool:
    """Return whether normalization may merge or reorder a character with the one before it."""
    if character < "\u0300":
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    hangul_vowel_or_tail = "\u1160" <= first <= "\u11ff"
    kirat_rai_vowel = "\U00016d63" <= first <= "\U00016d6a"
    return unicodedata.category(first)[0] == "M" or hangul_vowel_or_tail or kirat_rai_vowel
