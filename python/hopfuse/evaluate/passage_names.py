"""Numbers for passages that files name by strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from types import MappingProxyType

from ..errors import FormatError, InputError
from .json_lines import json_objects


class PassageNames:
    """A number for every passage name, in order of first sight.

    Judgements and runs from files are comparable where they share one of these.

    Parameters
    ----------
    names : iterable of str
        The first names: those of an index's ``passage_ids`` get its passages' numbers.

    Raises
    ------
    InputError
        ``names`` is one string, or holds what is none.

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames
    >>> names = PassageNames()
    >>> names.number("doc7"), names.number("doc3"), names.number("doc7")
    (0, 1, 0)
    >>> names.name(1), PassageNames(["a", "b"]).number("b")
    ('doc3', 1)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._titles: dict[str, str] = {}
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"names is {names!r}; give a list of names")
        for at, name in enumerate(names):
            if not isinstance(name, str):
                raise InputError(f"names[{at}] is {name!r}; it must be a str")
            self.number(name)

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

    def read_titles(self, path: str | PathLike[str]) -> None:
        """Keep the titles of a .jsonl file of passages, objects of "id" and "title", for reports.

        Other keys are ignored, and so are passages without a title.

        Raises
        ------
        FormatError
            A line that is not an object with an id, a title that is not a string, a lone surrogate; the message names
            the line.
        OSError
            The file cannot be read.
        """
        for at, row in json_objects(path, ("id",)):
            title = row.get("title") or ""
            if not isinstance(title, str):
                raise FormatError(f"{path}, line {at} has the title {title!r}; a title is a string")
            if title:
                self.set_title(str(row["id"]), title)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"PassageNames({len(self)} passages)"
