"""Numbers for passages that files name by strings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class PassageNames:
    """A number for every passage name, in order of first sight.

    Judgements and runs from files are comparable where they share one of these.

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames
    >>> names = PassageNames()
    >>> names.number("doc7"), names.number("doc3"), names.number("doc7")
    (0, 1, 0)
    >>> names.name(1)
    'doc3'
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._titles: dict[str, str] = {}

    def number(self, name: str) -> int:
        """The passage's number; a new name gets the next one."""
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def name(self, number: int) -> str:
        """The name of a passage that has a number."""
        return self._names[number]

    @property
    def titles(self) -> Mapping[str, str]:
        """Titles by name, of the passages whose title is known."""
        return MappingProxyType(self._titles)

    def set_title(self, name: str, title: str) -> None:
        """Keep a passage's title, for reports."""
        self._titles[name] = title

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"PassageNames({len(self)} passages)"
