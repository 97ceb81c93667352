"""A JSON object from what a model wrote, which may have other words around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from ..evaluate.json_lines import check_characters
from ._schema import problem_of


class UnusableError(Exception):
    """What is wrong with an answer, in words for the model that gave it."""


def object_in(text: str, schema: Mapping[str, Any]) -> Any:
    """The first JSON object of a text that fits the schema.

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
    for value in _objects(text):
        problem = problem_of(value, schema) or _half_characters(value)
        if problem is None:
            return value
        problems.append(problem)
    raise UnusableError(problems[0] if problems else "there is no JSON object in the answer")


def _objects(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(parse_constant=_refuse), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _half_characters(value: Any) -> str | None:
    try:
        check_characters(json.dumps(value), value, "the answer")
    except ValueError as error:
        return str(error)
    return None
