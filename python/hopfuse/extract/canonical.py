"""Numbers for names with the same canonical key, and labels by majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from ..text import canonical_key


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
