"""Find the words of a folded text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache


def tokens(folded: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the words of a text: runs of letters, digits and marks, and numbers with points or commas.

    Single letters, which apostrophes and initials leave, are not words.

    Examples
    --------
    >>> text = "ada's 2nd engine: 1,234.5 parts, u.s."
    >>> [text[start:end] for start, end in tokens(text)]
    ['ada', '2nd', 'engine', '1,234.5', 'parts']
    """
    for match in _pattern().finditer(folded):
        start, end = match.span()
        if end - start > 1 or not folded[start].isalpha():
            yield start, end


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern, which includes marks such as Indic vowels; ``\\w`` does not."""
    marks = "".join(chr(point) for point in range(0x300, 0x10000) if unicodedata.category(chr(point))[0] == "M")
    letter = r"[^\W_]"
    return re.compile(rf"\d+(?:[.,]\d+)+(?!{letter})|{letter}(?:{letter}|[{marks}])*")
