"""One entity for the names that differ in writing alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ._folding import fold

_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)")  # before a space: in "A. Lovelace" it is an initial
# What separates or surrounds words. Signs that tell names apart (C, C++, C#; AT&T; 5%) are not among it.
_SEPARATORS = re.compile(r"[\s_.,;:!?\"'`´‘’“”«»(){}\[\]/\\|~‐-―-]+")
_LEADING = re.compile(f"^{_SEPARATORS.pattern}")


def canonical_key(name: str) -> str:
    """What names of one entity have in common: letters, whatever their case, punctuation, spaces and leading article.

    Returns
    -------
    str
        Folded (NFKC, case), punctuation and spaces as single spaces, without a leading article; what is nothing but
        punctuation stays as it is folded.

    Examples
    --------
    >>> from hopfuse.extract import canonical_key
    >>> canonical_key("The  Analytical-Engine"), canonical_key("C++"), canonical_key("An")
    ('analytical engine', 'c++', 'an')
    """
    folded = fold(name, case_sensitive=False)
    bare = _ARTICLE.sub("", _LEADING.sub("", folded))
    return _SEPARATORS.sub(" ", bare).strip() or folded.strip()


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
        """The number of a name, which is counted."""
        surface = " ".join(name.split())
        number = self._number.setdefault(canonical_key(surface), len(self._surfaces))
        if number == len(self._surfaces):
            self._surfaces.append(Counter())
        self._surfaces[number][surface] += 1
        return number

    def names(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """For each number its most frequent writing (the first seen of equally frequent ones), and the others."""
        ordered = [tuple(_by_frequency(counts)) for counts in self._surfaces]
        return tuple(row[0] for row in ordered), tuple(row[1:] for row in ordered)


def _by_frequency(counts: Counter[str]) -> Iterable[str]:
    return (name for name, _ in counts.most_common())  # most_common keeps the order of first sight among equals
