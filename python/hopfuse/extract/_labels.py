"""What kind of thing names stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


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
        """The label that is given most often, of equally frequent ones the first; ``""`` where there is none."""
        counts = self._counts.get(key)
        return "" if counts is None else counts.most_common(1)[0][0]
