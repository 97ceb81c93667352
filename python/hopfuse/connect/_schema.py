"""The part of JSON Schema that answers need, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError

TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum"},
}
ALWAYS = {"type", "description"}


def check_schema(schema: Any, at: str = "schema") -> None:
    """Refuse a schema that :func:`problem_of` could not hold an answer to.

    Raises
    ------
    InputError
        A type or keyword that is not known, at any depth.
    """
    if not isinstance(schema, Mapping) or schema.get("type") not in TYPES:
        raise InputError(f"{at} is {schema!r}; it must be a mapping whose 'type' is one of {', '.join(TYPES)}")
    kind = schema["type"]
    allowed = ALWAYS | KEYWORDS.get(kind, set())
    for keyword in schema:
        if keyword not in allowed:
            raise InputError(f"{at} has the keyword {keyword!r}; a schema of type {kind!r} may have {sorted(allowed)}")
    if schema.get("additionalProperties", False) is not False:
        raise InputError(f"{at} allows other properties; 'additionalProperties' must be False or absent")
    for name, below in schema.get("properties", {}).items():
        check_schema(below, f"{at}.{name}")
    if "items" in schema:
        check_schema(schema["items"], f"{at}[]")


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
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is {_short(value)}; it must be one of {list(schema['enum'])}"
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
