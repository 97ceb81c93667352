"""Split tab-separated lines into fields, some of which may be in quotes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

Line = tuple[int, str]

#: The most lines of a field in quotes.
MOST_LINES = 10_000
_INNER = r'[^"]*(?:""[^"]*)*'
_QUOTED = re.compile(rf'"({_INNER})"(?=\t|\Z)')
_OPENED = re.compile(rf'"({_INNER})\Z')
_CLOSED = re.compile(rf'({_INNER})"(?=\t|\Z)')
_INSIDE = re.compile(rf"{_INNER}\Z")


def tsv_records(lines: Iterable[Line]) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the number of the first line and the fields of each record.

    A field in double quotes, in which quotes are doubled, is what is between them, and may have tabs and line breaks:
    so pandas, Excel and csv write it. Any other quote is a character of the text, as one before a line that has all
    tabs of a record. Blank lines are skipped, unless there is one column.

    Parameters
    ----------
    lines : iterable of (int, str)
        Numbers and texts of lines, without their ends.

    Examples
    --------
    >>> lines = ['a\t"b ""c"" d"', '', '"d', 'e"\tf', 'g\t"h" i']
    >>> list(tsv_records(enumerate(lines, 1)))
    [(1, ['a', 'b "c" d']), (3, ['d\ne', 'f']), (5, ['g', '"h" i'])]
    """
    ahead, width = _Ahead(lines), 0
    for number, line in ahead:
        if width > 1 and not line.strip() and "\t" not in line:
            continue
        fields = _fields(line, ahead, width) if '"' in line else line.split("\t")
        width = width or len(fields)
        yield number, fields


class _Ahead:
    """Lines that can be looked at before they are taken."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines, self._seen = iter(lines), deque[Line]()

    def __iter__(self) -> Iterator[Line]:
        while self._seen or self._see():
            yield self._seen.popleft()

    def _see(self) -> bool:
        line = next(self._lines, None)
        if line is not None:
            self._seen.append(line)
        return line is not None

    def peek(self, at: int) -> str | None:
        """Return the text of a later line, or None after the last one."""
        while len(self._seen) <= at:
            if not self._see():
                return None
        return self._seen[at][1]

    def drop(self, count: int) -> None:
        """Take lines that were looked at."""
        for _ in range(count):
            self._seen.popleft()


def _fields(line: str, ahead: _Ahead, width: int) -> list[str]:
    """Return the fields of a record that begins with a line, and take the other lines that it has."""
    first, fields, at, taken = line, list[str](), 0, 0
    while at <= len(line):
        quoted = _QUOTED.match(line, at)
        if quoted is not None:
            fields.append(_plain(quoted[1]))
            at = quoted.end() + 1
            continue
        opened = _OPENED.match(line, at)
        closed = None if opened is None else _closed(opened[1], ahead, taken, width or first.count("\t") + 1)
        if closed is not None:
            text, line, at, taken = closed
            fields.append(_plain(text))
            continue
        end = line.find("\t", at)
        end = len(line) if end < 0 else end
        fields.append(line[at:end])
        at = end + 1
    if taken and width and len(fields) != width:  # quotes that are characters
        return _fields(first, _Ahead(()), width)
    ahead.drop(taken)
    return fields


def _closed(text: str, ahead: _Ahead, taken: int, width: int) -> tuple[str, str, int, int] | None:
    """Return the text of a field that a later line closes, that line, the place after it and the lines taken.

    A line with all tabs of a record is one: the quote before it is a character.
    """
    parts = [text]
    for at in range(taken, taken + MOST_LINES):
        line = ahead.peek(at)
        if line is None:
            return None
        closed = _CLOSED.match(line)
        inside = line if closed is None else closed[1]
        if 0 < width - 1 <= inside.count("\t"):
            return None
        if closed is not None:
            return "\n".join([*parts, closed[1]]), line, closed.end() + 1, at + 1
        if _INSIDE.match(line) is None:
            return None
        parts.append(line)
    return None


def _plain(quoted: str) -> str:
    return quoted.replace('""', '"')
