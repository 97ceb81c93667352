"""Read JSON as language models write it: with comments, trailing commas, single quotes and keys without quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from ..io.json_lines import object_of

MAX_DEPTH = 100  # of nested objects and lists, more than any schema needs

_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)  # an unclosed comment has the rest
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.])")
_PLAIN = {quote: re.compile(rf"[^\\{quote}]*") for quote in "\"'"}
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt'])")
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


class BrokenError(ValueError):
    """A text is no JSON; ``end`` is the place up to which it was read."""

    def __init__(self, problem: str, end: int) -> None:
        super().__init__(problem)
        self.end = end


class TooDeepError(Exception):
    """A value is nested deeper than :data:`MAX_DEPTH`."""


def json_value(text: str, at: int) -> tuple[Any, int]:
    r"""Return the object or list that begins at a place of a text, and the place after it.

    Read are JSON, and what differs from it in one meaning only: a comma after the last entry, comments (``//``, ``#``,
    ``/* */``), strings in single quotes, in which an apostrophe between letters ends nothing, keys without quotes,
    Python's constants, and line breaks in strings.

    Raises
    ------
    BrokenError
        The text is something else, or an object has a key twice.
    TooDeepError

    Examples
    --------
    >>> json_value("[1, 'O\\'Hara', 'Dan O'Bannon',] # names", 0)
    ([1, "O'Hara", "Dan O'Bannon"], 31)
    """
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise TooDeepError from None
    except ValueError:
        return _Careless(text, at).read()


class _Careless:
    """Reads a value from the place ``at`` of a text."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at

    def read(self) -> tuple[Any, int]:
        """Return the value, and the place after it."""
        try:
            return self._value(0), self._at
        except ValueError as error:
            raise BrokenError(str(error), self._at) from None

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise TooDeepError
        match self._peek():
            case "{":
                return object_of(self._listed("}", lambda: self._member(depth)))
            case "[":
                return self._listed("]", lambda: self._value(depth + 1))
            case '"' | "'":
                return self._string()
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            return json.loads(number[0])
        start, word = self._at, self._word()
        if word not in _CONSTANTS:
            self._at = start
            self._refuse()
        return _CONSTANTS[word]

    def _listed(self, end: str, one: Callable[[], Any]) -> list[Any]:
        """Return the entries up to a closing bracket."""
        self._at += 1
        found: list[Any] = []
        while self._peek() != end:
            found.append(one())
            if self._peek() == ",":
                self._at += 1
            elif self._peek() != end:
                self._refuse()
        self._at += 1
        return found

    def _member(self, depth: int) -> tuple[str, Any]:
        key = self._string() if self._peek() in ('"', "'") else self._word()
        if self._peek() != ":":
            self._refuse()
        self._at += 1
        return key, self._value(depth + 1)

    def _string(self) -> str:
        quote, parts = self._text[self._at], list[str]()
        self._at += 1
        while True:
            plain = _PLAIN[quote].match(self._text, self._at)
            assert plain is not None
            parts.append(plain[0])
            self._at = plain.end()
            if self._text[self._at : self._at + 1] == quote:
                self._at += 1
                if quote == '"' or not self._is_apostrophe():
                    return _joined("".join(parts))
                parts.append(quote)
                continue
            escape = _ESCAPE.match(self._text, self._at)
            if escape is None:
                self._refuse()
            parts.append("'" if escape[0] == "\\'" else json.loads(f'"{escape[0]}"'))
            self._at = escape.end()

    def _is_apostrophe(self) -> bool:
        """Return whether the quote before the place is between two letters or digits."""
        around = self._text[self._at - 2 : self._at + 1]
        return len(around) == 3 and around[0].isalnum() and around[2].isalnum()

    def _word(self) -> str:
        word = _WORD.match(self._text, self._at)
        if word is None:
            self._refuse()
        self._at = word.end()
        return word[0]

    def _peek(self) -> str:
        """Return the next character after blanks and comments, or ``""`` at the end."""
        blank = _SPACE.match(self._text, self._at)
        assert blank is not None
        self._at = blank.end()
        return self._text[self._at : self._at + 1]

    def _refuse(self) -> NoReturn:
        raise ValueError(f"it is not JSON at {self._text[self._at : self._at + 20]!r}")


def _joined(text: str) -> str:
    """Return a text whose escaped surrogates of a pair are one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=object_of, parse_constant=_no_constant)
