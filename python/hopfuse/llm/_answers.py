"""Check answers against schemas, and find the JSON object in a model's text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NoReturn

from ..errors import InputError, MissingExtraError

MAX_DEPTH = 100  # of nested objects and lists, more than any schema needs
TOO_DEEP = f"it is nested deeper than {MAX_DEPTH}"
MAX_SHOWN = 300  # characters of a problem, whose message may contain the whole value
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
        try:
            library, referencing = import_module("jsonschema"), import_module("referencing")
        except ModuleNotFoundError as error:
            raise MissingExtraError("jsonschema", "llm", "ChatEndpoint.ask") from error
        self.plain: dict[str, Any] = _plain_copy(schema)
        if self.plain.get("type") != "object":
            raise InputError(
                "UNSORTED",
                "schema",
                "{field} is of type {get!r}; it must be 'object': put other types in a property",
                get=self.plain.get("type"),
            )
        draft = library.Draft202012Validator
        try:
            draft.check_schema(self.plain)
        except library.SchemaError as error:
            place = ".".join(["schema", *map(str, error.absolute_path)])
            raise InputError(
                "UNSORTED",
                None,
                "{place}: {message}; give a JSON Schema, draft 2020-12",
                place=place,
                message=error.message[:MAX_SHOWN],
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
                "UNSORTED",
                "schema",
                "{field} has a $ref that does not point within it: {unresolvable}",
                unresolvable=unresolvable,
            ) from None
        if error is None:
            return None
        place = "the answer" + error.json_path.removeprefix("$")
        return f"{place}: {error.message[:MAX_SHOWN]}"


def _is_integer(checker: Any, value: Any) -> bool:
    """Return whether a value is an int. Unlike in JSON Schema, 1.0 is not, since callers use integers as indices."""
    return isinstance(value, int) and not isinstance(value, bool)


def _plain_copy(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise InputError(
            "type", "schema", "{field} is {given!r:.80}; it must be a mapping, a JSON Schema of an object", given=schema
        )
    try:
        text = json.dumps(_plain(schema), allow_nan=False, ensure_ascii=False)
        text.encode()
    except RecursionError:
        problem = "is nested too deeply, or in itself"
    except (TypeError, ValueError) as error:  # a lone surrogate is a ValueError too
        problem = f"is not JSON: {error}"
    else:
        copy: dict[str, Any] = json.loads(text)
        return copy
    raise InputError(
        "UNSORTED",
        "schema",
        "{field} {problem}; give a JSON Schema of dictionaries, lists, strings and numbers",
        problem=problem,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"a name in {list(value)!r:.80} is not a string")
        return {name: _plain(below) for name, below in value.items()}
    return [_plain(below) for below in value] if isinstance(value, list | tuple) else value


def object_in(text: str, schema: Schema) -> Any:
    """Return the first JSON object in a text that is valid under the schema; skip a leading ``<think>…</think>``.

    Raises
    ------
    UnusableError
        No object is valid; the message concerns the first one.

    Examples
    --------
    >>> object_in('Of course: {"n": 1}.', Schema({"type": "object", "properties": {"n": {"type": "integer"}}}))
    {'n': 1}
    """
    problems = []
    for value in _objects(_THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text):
        problem = (TOO_DEEP if _is_deep(value) else None) or schema.problem_of(value) or _unwritable(value)
        if problem is None:
            return value
        problems.append(problem)
    raise UnusableError(problems[0] if problems else "there is no JSON object in the answer")


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
    decoder, at = json.JSONDecoder(parse_constant=_refuse), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            yield value
        except RecursionError:  # an inner object is not an answer
            raise UnusableError(TOO_DEEP) from None
        except ValueError:
            end = at + 1
        at = text.find("{", end)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
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
