"""A JSON object from what a model wrote, which may have other words around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from ..evaluate.json_lines import check_characters
from ._schema import problem_of

DEEPEST = 100  # objects and lists within each other: no schema that a person writes has as many
NESTED = f"it is nested deeper than {DEEPEST}"
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


class UnusableError(Exception):
    """What is wrong with an answer, in words for the model that gave it."""


def object_in(text: str, schema: Mapping[str, Any]) -> Any:
    """The first JSON object of a text that fits the schema, after a ``<think>…</think>`` that the text begins with.

    Raises
    ------
    UnusableError
        None does; the message is about the first.

    Examples
    --------
    >>> object_in('Of course: {"n": 1}.', {"type": "object", "properties": {"n": {"type": "integer"}}})
    {'n': 1}
    """
    problems = []
    for value in _objects(_THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text):
        problem = (NESTED if _is_deep(value) else None) or problem_of(value, schema) or _unwritable(value)
        if problem is None:
            return value
        problems.append(problem)
    raise UnusableError(problems[0] if problems else "there is no JSON object in the answer")


def words_in(text: Any) -> str:
    """A text that is whole and not empty.

    Raises
    ------
    UnusableError
        It is not.
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
        except RecursionError:  # what is inside of it is no answer of its own
            raise UnusableError(NESTED) from None
        except ValueError:
            end = at + 1
        at = text.find("{", end)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [below for one in level for below in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _unwritable(value: Any) -> str | None:
    """Why a value, sound though its parts that the schema names may be, cannot be kept as JSON in UTF-8."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        return "it has a number that is not finite"
    try:
        check_characters(text, value, "the answer")
    except ValueError as error:
        return str(error)
    return None
