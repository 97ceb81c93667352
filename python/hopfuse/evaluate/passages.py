"""Map passage names in files to numbers, titles and texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_id, check_list, wrong_type
from ..errors import FormatError
from ..io.json_lines import json_objects
from ..io.runs import Numbers


class PassageNames:
    """Numbers for passage names, in order of first occurrence.

    Judgements and runs from files are comparable if they are read with the same object.

    Parameters
    ----------
    names : iterable of str or int
        The first names; the ``passage_ids`` of an index get the numbers of its passages. Integers are the same as
        their digits, as in files.

    Raises
    ------
    InputError
        ``names`` is a string, or has an entry that is not a string or an integer.

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames
    >>> names = PassageNames()
    >>> names.number("doc7"), names.number("doc3"), names.number("doc7")
    (0, 1, 0)
    >>> names.name(1), PassageNames(["a", "b"]).number("b")
    ('doc3', 1)
    """

    def __init__(self, names: Iterable[str | int] = ()) -> None:
        self._numbers = Numbers[str]()
        self._titles: dict[str, str] = {}
        for at, name in enumerate(check_list(names, "names", "a list of names")):
            self.number(str(check_id(name, f"names[{at}]")))

    def number(self, name: str) -> int:
        """Return the passage's number; a new name gets the next one."""
        return self._numbers[name]

    def numbers(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of many passages; new names get the next ones.

        Examples
        --------
        >>> from hopfuse.evaluate import PassageNames
        >>> PassageNames(["a"]).numbers(["b", "a", "b"])
        array([1, 0, 1])
        """
        return np.fromiter(map(self._numbers.__getitem__, names), np.int64, len(names))

    def name(self, number: int) -> str:
        """Return the name of the passage with this number."""
        return self._numbers.names[number]

    @property
    def titles(self) -> Mapping[str, str]:
        """Known titles, by name."""
        return MappingProxyType(self._titles)

    def set_title(self, name: str, title: str) -> None:
        """Set the title of a passage, for reports."""
        self._titles[name] = title

    def read_titles(self, path: str | PathLike[str]) -> None:
        """Read titles for reports from a .jsonl file of passages with "id" and "title".

        Other keys and passages without a title are ignored.

        Raises
        ------
        FormatError
            A line is not an object with an id, a title is not a string, or a string has a lone surrogate; the error
            names the line.
        OSError
            The file cannot be read.
        """
        for at, row in json_objects(path, ("id",)):
            title = _string(row, "title", f"{path}, line {at}")
            if title:
                self.set_title(str(row["id"]), title)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"PassageNames({len(self)} passages)"


def read_texts(path: str | PathLike[str], names: PassageNames) -> dict[int, str]:
    """Read the title and text of each passage that ``names`` has, from a .jsonl file of passages.

    Read the runs first, so that ``names`` has all their passages.

    Parameters
    ----------
    path : path
        Objects with "id", "text" and, optionally, "title".
    names : PassageNames
        The names that judgements and runs were read with.

    Returns
    -------
    dict of int to str
        By number: the title, if there is one, on a line above the text.

    Raises
    ------
    FormatError
        A line is not an object with an id and a text, a title or text is not a string, or a string has a lone
        surrogate; the error names file and line.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.evaluate import PassageNames, read_texts
    >>> names = PassageNames()
    >>> names.number("a")
    0
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "passages.jsonl")
    ...     _ = path.write_text('{"id": "b", "text": "."}\\n{"id": "a", "title": "Ada", "text": "She wrote."}\\n')
    ...     read_texts(path, names)
    {0: 'Ada\\nShe wrote.'}
    """
    texts = {}
    for at, row in json_objects(path, ("id", "text")):
        where = f"{path}, line {at}"
        title, text = _string(row, "title", where), _string(row, "text", where)
        if str(row["id"]) in names:
            texts[names.number(str(row["id"]))] = f"{title}\n{text}" if title else text
    return texts


def _string(row: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text of a row; a title may be absent or null."""
    value = row.get(key)
    if value is None and key == "title":
        return ""
    if not isinstance(value, str):
        raise wrong_type(value, key, "a string").about(kind=FormatError).at(where)
    return value
