"""Check answers against schemas, and find the JSON object in a model's text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from .._validation import check_type, import_extra
from ..errors import InputError
from ..io.json_lines import object_of

_MAX_DEPTH = 100  # of nested objects and lists, more than any schema needs
TOO_DEEP = f"it is nested deeper than {_MAX_DEPTH}"
MAX_SHOWN = 300  # characters of a problem, whose message may contain the whole value
MAX_READ = 16  # times its length that a text is read from braces that begin no object
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


class UnusableError(Exception):
    """An answer that cannot be used. The message tells the model why."""


class Schema:
    """A checked copy of a JSON Schema of an object.

    Parameters
    ----------
    schema : mapping
        JSON Schema, draft 2020-12, with ``"type": "object"``. A ``$ref`` must point within the schema; nothing is
        fetched. Mappings become dictionaries, and tuples lists.

    Raises
    ------
    InputError
        The schema is not valid.
    MissingExtraError
        ``jsonschema`` is not installed.

    Examples
    --------
    >>> Schema({"type": "object", "properties": {"n": {"type": "integer"}}}).problem_of({"n": "1"})
    "the answer.n: '1' is not of type 'integer'"
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        library, referencing = (import_extra(name, "ChatEndpoint.ask") for name in ("jsonschema", "referencing"))
        self.plain: dict[str, Any] = _plain_copy(schema)
        if self.plain.get("type") != "object":
            raise InputError(
                "choice",
                "schema.type",
                "{field} is {given!r}; it must be {allowed!r}: put other types in a property",
                given=self.plain.get("type"),
                allowed="object",
            )
        draft = library.Draft202012Validator
        try:
            draft.check_schema(self.plain)
        except library.SchemaError as error:
            place = ".".join(["schema", *map(str, error.absolute_path)])
            raise InputError(
                "syntax",
                place,
                "{field}: {problem}; give a JSON Schema, draft 2020-12",
                problem=error.message[:MAX_SHOWN],
            ) from None
        checker = draft.TYPE_CHECKER.redefine("integer", _is_integer)
        validator = library.validators.extend(draft, type_checker=checker)
        self._validator = validator(self.plain, registry=referencing.Registry())
        self._best_match = library.exceptions.best_match
        self._unresolvable = referencing.exceptions.Unresolvable

    def problem_of(self, value: Any) -> str | None:
        """Return a sentence that says what is wrong with a value, or None."""
        try:
            error = self._best_match(self._validator.iter_errors(value))
        except self._unresolvable as unresolvable:
            raise InputError(
                "unknown",
                "schema",
                "{field} has a $ref that does not point within it: {error}",
                error=str(unresolvable),
            ) from None
        if error is None:
            return None
        place = "the answer" + error.json_path.removeprefix("$")
        return f"{place}: {error.message[:MAX_SHOWN]}"


def _is_integer(checker: Any, value: Any) -> bool:
    """Return whether a value is an int. Unlike in JSON Schema, 1.0 is not, since callers use integers as indices."""
    return isinstance(value, int) and not isinstance(value, bool)


def _plain_copy(schema: Any) -> dict[str, Any]:
    check_type(schema, "schema", Mapping, "a mapping, a JSON Schema of an object")
    try:
        text = json.dumps(_plain(schema), allow_nan=False, ensure_ascii=False)
        text.encode()
    except RecursionError:
        problem = "nested too deeply, or in itself"
    except (TypeError, ValueError) as error:  # a lone surrogate is a ValueError too
        problem = str(error)
    else:
        copy: dict[str, Any] = json.loads(text)
        return copy
    raise InputError(
        "syntax",
        "schema",
        "{field} cannot be written as JSON ({problem}); give dictionaries, lists, strings and numbers",
        problem=problem,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"a name in {list(value)!r:.80} is not a string")
        return {name: _plain(below) for name, below in value.items()}
    return [_plain(below) for below in value] if isinstance(value, list | tuple) else value


def object_in(text: str, schema: Schema, fit: Callable[[Any], Any] | None = None) -> Any:
    """Return the first JSON object in a text that is valid under the schema; skip a leading ``<think>…</think>``.

    Objects are read as :func:`_json_value` reads them. If none is valid, and no other brace is in the text, ``fit`` is
    applied to each of them, and to the list that is the only JSON of the text.

    Parameters
    ----------
    text : str
    schema : Schema
    fit : callable, optional
        Returns an object or a list in the form of the schema, or None if it has another meaning.

    Raises
    ------
    UnusableError
        No object is valid, and ``fit`` makes none or several; the message concerns the first one.

    Examples
    --------
    >>> object_in('Of course: {"n": 1}.', Schema({"type": "object", "properties": {"n": {"type": "integer"}}}))
    {'n': 1}
    """
    text = _THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text
    values, problems, broken = list[Any](), list[str](), None
    try:
        for value in _objects(text):
            if isinstance(value, _BrokenError):
                broken = broken or value
                continue
            problem = _problem_of(value, schema)
            if problem is None:
                return value
            values.append(value)
            problems.append(problem)
        if fit is not None and broken is None:
            fitted = [found for value in (*values, *_only_list(text)) if (found := fit(value)) is not None]
            fitted = [found for found in fitted if _problem_of(found, schema) is None]
            if fitted and all(one == fitted[0] for one in fitted):
                return fitted[0]
    except _TooDeepError:
        raise UnusableError(TOO_DEEP) from None
    reason = "" if broken is None else f": {broken}"
    raise UnusableError(problems[0] if problems else f"there is no JSON object in the answer{reason}")


def _problem_of(value: Any, schema: Schema) -> str | None:
    return (TOO_DEEP if _is_deep(value) else None) or schema.problem_of(value) or _unwritable(value)


def words_in(text: Any) -> str:
    """Return a text, unless it is empty or has half a character.

    Raises
    ------
    UnusableError
    """
    if not isinstance(text, str) or not text.strip():
        raise UnusableError("it is empty")
    problem = _unwritable(text)
    if problem is not None:
        raise UnusableError(problem)
    return text


def _objects(text: str) -> Iterator[Any]:
    """Yield the objects in a text, and a BrokenError for each brace that begins none.

    Braces inside a comment may each be read to the end of the text, so that they end after :data:`MAX_READ` times its
    length.
    """
    at, left = text.find("{"), MAX_READ * len(text)
    while at >= 0 and left > 0:
        try:
            value, end = _json_value(text, at)
        except _BrokenError as error:
            value, end = error, at + 1
            left -= error.end - at
        yield value
        at = text.find("{", end)


def _only_list(text: str) -> Iterator[Any]:
    """Yield the list of a text without other brackets."""
    at = text.find("[")
    if at < 0 or "{" in text[:at]:
        return
    try:
        value, end = _json_value(text, at)
    except ValueError:
        return
    if not any(bracket in text[end:] for bracket in "[{"):
        yield value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        level = [below for one in level for below in _children(one)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _unwritable(value: Any) -> str | None:
    """Return why a value cannot be stored as JSON in UTF-8, or None; parts outside the schema count too."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "it has a lone surrogate, half a character"
    except ValueError:
        return "it has a number that is not finite"
    return None


# ---- JSON as models write it -----------------------------------------------------------------------------------------

_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)  # an unclosed comment has the rest
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.])")
_PLAIN = {quote: re.compile(rf"[^\\{quote}]*") for quote in "\"'"}
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt'])")
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


class _BrokenError(ValueError):
    """A text is no JSON; ``end`` is the place up to which it was read."""

    def __init__(self, problem: str, end: int) -> None:
        super().__init__(problem)
        self.end = end


class _TooDeepError(Exception):
    """A value is nested deeper than :data:`_MAX_DEPTH`."""


def _json_value(text: str, at: int) -> tuple[Any, int]:
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
    >>> _json_value("[1, 'O\\'Hara', 'Dan O'Bannon',] # names", 0)
    ([1, "O'Hara", "Dan O'Bannon"], 31)
    """
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise _TooDeepError from None
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
            raise _BrokenError(str(error), self._at) from None

    def _value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _TooDeepError
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
