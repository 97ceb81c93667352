"""JSON Lines, an object at a time, with the line in every error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from ..errors import FormatError


def json_objects(path: str | PathLike[str], needed: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The number and the object of each line that is not blank.

    Parameters
    ----------
    path : path
    needed : sequence of str
        Keys that every object has.

    Raises
    ------
    FormatError
        A line that is not UTF-8, not JSON, or not an object with those keys; the message names file and line.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.jsonl")
    ...     _ = path.write_text('{"id": "a"}')
    ...     list(json_objects(path, ["id"]))
    [(1, {'id': 'a'})]
    """
    keys = " and ".join(map(repr, needed))
    for at, line in text_lines(path):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise FormatError(f"{path}, line {at} is not JSON: {error}") from error
        if not isinstance(record, dict) or any(key not in record for key in needed):
            raise FormatError(f"{path}, line {at} is not a JSON object with the keys {keys}")
        yield at, record


def text_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """The number and the text of each line that is not blank, without a byte-order mark.

    Raises
    ------
    FormatError
        A line that is not UTF-8.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lines.txt")
    ...     _ = path.write_text("one\\n\\ntwo\\n")
    ...     list(text_lines(path))
    [(1, 'one'), (3, 'two')]
    """
    with open(path, "rb") as lines:
        for at, line in enumerate(lines, 1):
            try:
                text = line.decode("utf-8-sig" if at == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise FormatError(f"{path}, line {at} is not UTF-8: {error}") from error
            if text.strip():
                yield at, text
