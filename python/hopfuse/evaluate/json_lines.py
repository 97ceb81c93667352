"""JSON Lines, an object at a time, with the line in every error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from ..errors import FormatError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


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
        A line that is not UTF-8, not JSON, not an object with those keys, or that escapes half a character
        (:func:`check_characters`); the message names file and line.
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
        check_characters(line, record, f"{path}, line {at}")
        if not isinstance(record, dict) or any(key not in record for key in needed):
            raise FormatError(f"{path}, line {at} is not a JSON object with the keys {keys}")
        yield at, record


def check_characters(text: str, record: Any, where: str) -> None:
    """Refuse a lone surrogate, half a character: JSON can escape one (RFC 8259, section 8.2), UTF-8 cannot hold it.

    Parameters
    ----------
    text : str
        JSON.
    record
        What it says.
    where : str
        Its place, for the message.

    Raises
    ------
    FormatError
        A string or a key of the record has one.

    Examples
    --------
    >>> check_characters('"\\\\ud83d\\\\ude80"', "\\U0001f680", "line 1")
    """
    if not _SURROGATE.search(text):
        return
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise FormatError(f"{where} has {half} without its other half: a lone surrogate is no character") from None


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
