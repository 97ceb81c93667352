"""Read lines of UTF-8 text and of JSON. Errors name the line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from ..errors import FormatError, HopfuseError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def json_objects(path: str | PathLike[str], needed: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the number and the object of each line that is not blank.

    Parameters
    ----------
    path : path
    needed : sequence of str
        Keys that every object must have.

    Raises
    ------
    FormatError
        A line is not UTF-8, not JSON or not an object with these keys, has a key twice, or escapes a lone surrogate
        (:func:`check_characters`); the message names the file and the line.
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
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(
                "damaged", None, "{path}, line {at} is not JSON: {error}", path=path, at=at, error=error
            ) from error
        check_characters(line, record, f"{path}, line {at}")
        if not isinstance(record, dict) or any(key not in record for key in needed):
            raise FormatError(
                "damaged",
                None,
                "{path}, line {at} is not a JSON object with the keys {keys}",
                path=path,
                at=at,
                keys=keys,
            )
        yield at, record


def check_characters(text: str, record: Any, where: str) -> None:
    """Refuse lone surrogates, which JSON can escape (RFC 8259, section 8.2) but UTF-8 cannot encode.

    Raises
    ------
    FormatError
        A string or key of ``record``, parsed from the JSON ``text``, has one; ``where`` is its place.
    """
    if not _SURROGATE.search(text):
        return
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise FormatError(
            "damaged",
            None,
            "{where} has {half} without its other half: a lone surrogate is no character",
            where=where,
            half=half,
        ) from None


def text_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank; see :func:`numbered_lines`.

    Raises
    ------
    FormatError
        A line that is not UTF-8.
    OSError
        The file cannot be read.
    """
    return ((at, line) for at, line in numbered_lines(path, FormatError) if line.strip())


def numbered_lines(path: str | PathLike[str], refusal: type[HopfuseError]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of every line, without its end (LF or CR LF) and a byte-order mark.

    Raises
    ------
    HopfuseError
        ``refusal``: a line is not UTF-8.
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as lines:
        for at, line in enumerate(lines, 1):
            try:
                text = line.decode("utf-8-sig" if at == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise refusal(
                    "syntax", None, "{path}, line {at} is not UTF-8: {error}", path=path, at=at, error=error
                ) from None
            yield at, text.removesuffix("\n").removesuffix("\r")


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, refusing repeated keys, of which ``json.loads`` would silently keep the last.

    Raises
    ------
    ValueError
        The text is not JSON, or an object has a key twice.

    Examples
    --------
    >>> parse_json('{"id": "a", "hits": []}')
    {'id': 'a', 'hits': []}
    >>> parse_json('{"id": "a", "id": "b"}')
    Traceback (most recent call last):
    ValueError: the key 'id' is there twice
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")  # as json.loads does
    return _DECODER.decode(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise ValueError(f"the key {twice!r} is there twice")
    return found


#: json.loads makes a decoder of its own for every call that has a hook, which takes as long as a short line does.
_DECODER = json.JSONDecoder(object_pairs_hook=_distinct)
