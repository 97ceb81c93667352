"""Passages whose whole title a question names."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from ...text import fold, spaced, unaccented
from ...types import Hits


class TitleMatcher:
    """Find titles in questions, ignoring case, accents and punctuation."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._passages: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for passage, title in enumerate(titles):
            words = _words(title)
            if words:
                self._passages[words].append(passage)
        self._lengths = sorted({len(words) for words in self._passages}, reverse=True)

    def search(self, queries: Sequence[str]) -> Hits:
        """Return the passages whose title each question names, scored by the number of words in the title."""
        return Hits.from_lists([self._row(_words(query)) for query in queries])

    def _row(self, words: tuple[str, ...]) -> list[tuple[int, float]]:
        found: dict[int, float] = {}
        for n in self._lengths:
            for begin in range(len(words) - n + 1):
                for passage in self._passages.get(words[begin : begin + n], ()):
                    found.setdefault(passage, float(n))
        return sorted(found.items(), key=lambda hit: (-hit[1], hit[0]))


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text: letters with their marks, and digits; + and # distinguish C, C++ and C#.

    Accents do not count; scripts without spaces are cut into pairs of characters.
    """
    folded = spaced(unaccented(fold(text)))
    kept = (part if unicodedata.category(part)[0] in "LMN" or part in "+#" else " " for part in folded)
    return tuple("".join(kept).split())
