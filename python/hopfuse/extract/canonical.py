"""Give one number to names that differ in writing alone, and one label to what is labelled at several places."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable
from functools import lru_cache

from ._folding import fold

_INITIAL = r"[^\W\d_](?:[\s,]|\.(?!\w)|$)"  # not the "U" of "U.S.", nor the "T" of "T-shirt"
# Before a space: in "A. Lovelace" it is an initial, and so it is in "A A Milne".
_ARTICLE = re.compile(rf"^\s*(?:the|an|a(?!\s+{_INITIAL}))\s+(?=\S)")
_BETWEEN_LETTERS = re.compile(r"(?<=(?<!\S)[^\W\d_])\s+(?=[^\W\d_](?!\S))")  # in "u s a ", of "U.S.A."
# Dots and spaces, but not after the "s" of "Bob's" or the "t" of "don't", nor before the "O" of "O'Hara".
_JOINT = re.compile(r"(?<![\w.]['’][sdmt])(?:\s*\.[-‐]?\s*|\s+)(?=\w)(?!\w['’](?!s\b)\w)")
_MEANINGFUL = frozenset("#%&@*+$")  # C, C++ and C#; AT&T; 5%
_WITHIN_NUMBERS = frozenset(".,:/")
_MINUS = frozenset("-−")


def canonical_key(name: str) -> str:
    """Return what names of one entity share: letters and digits, whatever their case, punctuation and leading article.

    Returns
    -------
    str
        Folded (NFKC, case), without a leading "the", "a" or "an"; punctuation and spaces are single spaces, but for
        ``# % & @ * + $``, for ``. , : /`` between digits and for a minus before a number. Single letters are one
        word where a dot, a space or both stand between them: "U.S.", "U. S." and "U S" are "us", "I/O" is "i o". An
        "a" before another initial is one, too: "A A Milne" is "aa milne", "A Milne" is "milne". What is nothing but
        punctuation stays as it is folded.

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
    """Numbers for names; those of one key share a number.

    Numbers are given in the order in which keys are first seen.
    """

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._surfaces: list[Counter[str]] = []

    def __len__(self) -> int:
        return len(self._surfaces)

    def add(self, name: str) -> int:
        """Return the number of a name, and count it."""
        surface = " ".join(name.split())
        number = self._number.setdefault(canonical_key(surface), len(self._surfaces))
        if number == len(self._surfaces):
            self._surfaces.append(Counter())
        self._surfaces[number][surface] += 1
        return number

    def number(self, name: str) -> int:
        """Return the number of a name; one that is not there yet is added, another is not counted again."""
        known = self._number.get(canonical_key(name))
        return self.add(name) if known is None else known

    def names(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Return each number's most frequent writing (the first seen of equally frequent ones), and the others."""
        ordered = [tuple(_by_frequency(counts)) for counts in self._surfaces]
        return tuple(row[0] for row in ordered), tuple(row[1:] for row in ordered)


class Labels:
    """Labels that are given to the same thing at several places.

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
        """Count a label; a blank one is none."""
        if label.strip():
            self._counts.setdefault(key, Counter())[label] += 1

    def of(self, key: Hashable) -> str:
        """Return the label that is given most often, of equally frequent ones the first; ``""`` where there is none."""
        counts = self._counts.get(key)
        return "" if counts is None else counts.most_common(1)[0][0]


def _by_frequency(counts: Counter[str]) -> Iterable[str]:
    return (name for name, _ in counts.most_common())  # most_common keeps the order of first sight among equals


def _spaced(folded: str) -> str:
    """Put a space for each character that separates words."""
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
    """Return whether a character is punctuation, a space, or a sign that serves as such."""
    if character in _MEANINGFUL:
        return False
    return unicodedata.category(character)[0] in "PZ" or character.isspace() or character in "|~`´<>=^−"
