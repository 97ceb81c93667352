"""The part of JSON Schema that answers need: whether one holds to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def problem_of(value: Any, schema: Mapping[str, Any], at: str = "the answer") -> str | None:
    """What is wrong with a value, as a sentence; None where nothing is.

    Examples
    --------
    >>> problem_of({"n": "1"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
    "the answer.n is '1'; it must be of type integer"
    """
    kind: str = schema["type"]
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return f"{at} is {_short(value)}; it must be of type {kind}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{at} is {_short(value)}; it must be a finite number"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is {_short(value)}; it must be one of {schema['enum']}"
    if kind == "object":
        return _problem_of_object(value, schema, at)
    return _problem_of_array(value, schema, at) if kind == "array" else None


def _problem_of_object(value: Any, schema: Mapping[str, Any], at: str) -> str | None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{at} lacks {name!r}"
    for name, below in value.items():
        if name in properties:
            problem = problem_of(below, properties[name], f"{at}.{name}")
            if problem:
                return problem
        elif "additionalProperties" in schema:
            return f"{at} has {_short(name)}, which is not asked for"
    return None


def _problem_of_array(value: Any, schema: Mapping[str, Any], at: str) -> str | None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        return f"{at} has {len(value)} entries; it must have at least {least}" + (
            f" and at most {most}" if "maxItems" in schema else ""
        )
    if "items" in schema:
        found = (problem_of(one, schema["items"], f"{at}[{i}]") for i, one in enumerate(value))
        return next((problem for problem in found if problem), None)
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
