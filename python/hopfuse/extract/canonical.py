"""Canonical keys of names, numbers for names with the same key, and labels by majority."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable
from functools import lru_cache

from ._folding import fold

_INITIAL = r"[^\W\d_](?:[\s,]|\.(?!\w)|$)"  # not the "U" of "U.S.", nor the "T" of "T-shirt"
# "A" is an article only before a space; in "A. Lovelace" and "A A Milne" it is an initial.
_ARTICLE = re.compile(rf"^\s*(?:the|an|a(?!\s+{_INITIAL}))\s+(?=\S)")
_BETWEEN_LETTERS = re.compile(r"(?<=(?<!\S)[^\W\d_])\s+(?=[^\W\d_](?!\S))")  # in "u s a ", of "U.S.A."
# Dots and spaces between single letters, but not after the "s" of "Bob's" or before the "O" of "O'Hara".
_JOINT = re.compile(r"(?<![\w.]['’][sdmt])(?:\s*\.[-‐]?\s*|\s+)(?=\w)(?!\w['’](?!s\b)\w)")
_MEANINGFUL = frozenset("#%&@*+$")  # C, C++ and C#; AT&T; 5%
_WITHIN_NUMBERS = frozenset(".,:/")
_MINUS = frozenset("-−")


def canonical_key(name: str) -> str:
    """Return the key that spellings of a name share; it ignores case, punctuation and a leading article.

    Returns
    -------
    str
        The folded name (NFKC and case) without a leading "the", "a" or "an". Punctuation and spaces become single
        spaces, except ``# % & @ * + $``, ``. , : /`` between digits, and a minus before a number. Single letters that
        are separated by a dot, a space or both are joined: "U.S.", "U. S." and "U S" become "us", but "I/O" becomes "i
        o". An "a" before another initial is an initial: "A A Milne" becomes "aa milne", "A Milne" becomes "milne". A
        name of punctuation alone is only folded.

    Examples
    --------
    >>> from hopfuse.extract import canonical_key
    >>> [canonical_key(name) for name in ("The  Analytical-Engine", "C++", "A. Lovelace", "U.S.", "-1.5")]
    ['analytical engine', 'c++', 'a lovelace', 'us', '-1.5']
    """
    folded = fold(name, case_sensitive=False)
    begin = next((i for i, character in enumerate(folded) if not _separates(character) or character in _MINUS), 0)
    bare = _ARTICLE.sub("", folded[begin:])
    joined = _BETWEEN_LETTERS.sub(lambda gap: "" if _JOINT.match(bare, gap.start()) else " ", _spaced(bare))
    return " ".join(joined.split()) or " ".join(folded.split())


class NameTable:
    """Numbers names by their keys, in the order of first occurrence."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._surfaces: list[Counter[str]] = []

    def __len__(self) -> int:
        return len(self._surfaces)

    def add(self, name: str) -> int:
        """Count an occurrence of a name, and return its number."""
        surface = " ".join(name.split())
        number = self._number.setdefault(canonical_key(surface), len(self._surfaces))
        if number == len(self._surfaces):
            self._surfaces.append(Counter())
        self._surfaces[number][surface] += 1
        return number

    def number(self, name: str) -> int:
        """Return the number of a name without counting it; a new name is added."""
        known = self._number.get(canonical_key(name))
        return self.add(name) if known is None else known

    def names(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Return each number's most frequent spelling (in a tie the first one), and the others."""
        ordered = [tuple(_by_frequency(counts)) for counts in self._surfaces]
        return tuple(row[0] for row in ordered), tuple(row[1:] for row in ordered)


class Labels:
    """Counts labels of things, and returns the most frequent one.

    Examples
    --------
    >>> labels = Labels()
    >>> for label in ("ORG", "PERSON", "", "", "", "PERSON"):
    ...     labels.add("Ada", label)
    >>> labels.of("Ada"), labels.of("Bob")
    ('PERSON', '')
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, Counter[str]] = {}

    def add(self, key: Hashable, label: str) -> None:
        """Count a label; blank labels are ignored."""
        if label.strip():
            self._counts.setdefault(key, Counter())[label] += 1

    def of(self, key: Hashable) -> str:
        """Return the most frequent label, in a tie the first one, or ``""``."""
        counts = self._counts.get(key)
        return "" if counts is None else counts.most_common(1)[0][0]


def _by_frequency(counts: Counter[str]) -> Iterable[str]:
    return (name for name, _ in counts.most_common())  # most_common keeps the order of first occurrence in ties


def _spaced(folded: str) -> str:
    """Replace characters that separate words by spaces."""
    return "".join(" " if _is_separator(folded, at) else character for at, character in enumerate(folded))


def _is_separator(text: str, at: int) -> bool:
    character = text[at]
    if not _separates(character):
        return False
    after = at + 1 < len(text) and text[at + 1].isdigit()
    if character in _WITHIN_NUMBERS:
        return not (after and at > 0 and text[at - 1].isdigit())
    if character in _MINUS:
        return not (after and (at == 0 or text[at - 1].isspace()))
    return True


@lru_cache(maxsize=1 << 12)
def _separates(character: str) -> bool:
    """Return whether a character is punctuation, a space, or a similar symbol."""
    if character in _MEANINGFUL:
        return False
    return unicodedata.category(character)[0] in "PZ" or character.isspace() or character in "|~`´<>=^−"
