"""Read lines of UTF-8 text and of JSON. Errors name the line."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from ..errors import FormatError, HopfuseError

_SURROGATE = re.compile("\\\\u[dD][89a-fA-F]|[\ud800-\udfff]")


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
        A line is not UTF-8, not JSON or not an object with these keys, has a key twice, or a lone surrogate; the
        message names the file and the line.
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
    for at, line in text_lines(path):
        where = f"{path}, line {at}"
        record = parse_line(line, where)
        if not isinstance(record, dict) or any(key not in record for key in needed):
            raise FormatError(
                "missing",
                None,
                "it is not a JSON object with the keys {allowed}",
                allowed=" and ".join(map(repr, needed)),
            ).at(where)
        yield at, record


def parse_line(line: str | bytes, where: str | None, kind: type[HopfuseError] = FormatError) -> Any:
    """Parse JSON, mostly a line of a file.

    Raises
    ------
    HopfuseError
        Of the class ``kind``, with its place: the text is not JSON, an object has a key twice, or a string or key has a
        lone surrogate, which JSON can escape (RFC 8259, section 8.2) but UTF-8 cannot encode.
    """
    try:
        text = line if isinstance(line, str) else _decoded(line)
        record = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise (
            FormatError("syntax", None, "it is not JSON: {reason}", reason=error if line.strip() else "it is blank")
            .about(kind=kind)
            .at(where)
        ) from error
    if _SURROGATE.search(text):
        check_characters(record, where, kind)
    return record


def check_characters(record: Any, where: str | None, kind: type[HopfuseError] = FormatError) -> None:
    """Raise an error of the class ``kind`` if a string or key of a record from JSON has a lone surrogate."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        wrong = FormatError(
            "syntax", None, "it has {given} without its other half: a lone surrogate is no character", given=half
        )
        raise wrong.about(kind=kind).at(where) from None


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
            text = decoded(line.removeprefix(codecs.BOM_UTF8) if at == 1 else line, f"{path}, line {at}", refusal)
            yield at, text.removesuffix("\n").removesuffix("\r")


def decoded(text: bytes, where: str, refusal: type[HopfuseError] = FormatError) -> str:
    """Return UTF-8 as a string; raise ``refusal`` for anything else."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        wrong = FormatError("syntax", None, "it is not UTF-8: {error}", error=error)
        raise wrong.about(kind=refusal).at(where) from None


def line_blocks(path: str | PathLike[str], block_bytes: int = 1 << 20) -> Iterator[tuple[int, bytes]]:
    """Yield a file in blocks of whole lines, without a byte-order mark: the number of the first line, and the bytes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.txt")
    ...     _ = path.write_text("a\\nb\\n")
    ...     list(line_blocks(path, 1))
    [(1, b'a\\n'), (2, b'b\\n')]
    """
    first = 1
    with open(path, "rb") as file:
        while block := file.read(block_bytes):
            block += file.readline()
            yield first, block.removeprefix(codecs.BOM_UTF8) if first == 1 else block
            first += block.count(b"\n")


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
    return _DECODER.decode(_decoded(text) if isinstance(text, bytes) else text)


def _decoded(text: bytes) -> str:
    return text.decode(json.detect_encoding(text), "surrogatepass")  # as json.loads does


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raise a ValueError if it has a key twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = Counter(key for key, _ in pairs)
        twice = next(key for key, count in keys.items() if count > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


#: json.loads makes a decoder of its own for every call that has a hook, which takes as long as a short line does.
_DECODER = json.JSONDecoder(object_pairs_hook=object_of)
