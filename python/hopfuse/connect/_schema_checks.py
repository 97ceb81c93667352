"""Schemas that an answer can be held to, as plain JSON of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError
from ._schema import TYPES

KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum"},
}
ALWAYS = {"type", "description"}


def plain_schema(schema: Any) -> dict[str, Any]:
    """A deep copy in which mappings are dictionaries, and tuples lists.

    Raises
    ------
    InputError
        A type or keyword that is not known, or a keyword's value that is none, at any depth.

    Examples
    --------
    >>> plain_schema({"type": "object", "required": ("a",)})
    {'type': 'object', 'required': ['a']}
    """
    try:
        return _plain(schema, "schema")
    except RecursionError:
        pass
    raise InputError(
        "schema is nested too deeply, or in itself; an answer may have 100 objects and lists within others"
    )


def _plain(schema: Any, at: str) -> dict[str, Any]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(kind, str) or kind not in TYPES:
        raise InputError(f"{at} is {_shown(schema)}; it must be a mapping whose 'type' is one of {', '.join(TYPES)}")
    allowed = ALWAYS | KEYWORDS.get(kind, set())
    for keyword in schema:
        if keyword not in allowed:
            raise InputError(f"{at} has the keyword {keyword!r}; a schema of type {kind!r} may have {sorted(allowed)}")
    plain = {keyword: VALUES[keyword](value, at) for keyword, value in schema.items()}
    if plain.get("minItems", 0) > plain.get("maxItems", float("inf")):
        raise InputError(f"{at} has minItems {plain['minItems']} above maxItems {plain['maxItems']}; no list has both")
    if "additionalProperties" in plain:
        for name in plain.get("required", ()):
            if name not in plain.get("properties", {}):
                raise InputError(
                    f"{at}.required has {name!r}, which no answer may have: add it to 'properties', or leave "
                    "'additionalProperties' out"
                )
    return plain


def _properties(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{at}.properties is {_shown(value)}; it must be a mapping from names to schemas")
    for name in value:
        if not _is_text(name):
            raise InputError(f"{at}.properties has the name {_shown(name)}; a name must be a text of whole characters")
    return {name: _plain(below, f"{at}.{name}") for name, below in value.items()}


def _closed(value: Any, at: str) -> bool:
    if value is not False:
        raise InputError(f"{at} allows other properties; 'additionalProperties' must be False or absent")
    return False


def _text(value: Any, at: str) -> str:
    if not _is_text(value):
        raise InputError(f"{at}.description is {_shown(value)}; it must be a text of whole characters")
    return str(value)


def _texts(keyword: str) -> Callable[[Any, str], list[str]]:
    def texts(value: Any, at: str) -> list[str]:
        if not isinstance(value, list | tuple) or not all(_is_text(one) for one in value):
            raise InputError(f"{at}.{keyword} is {_shown(value)}; it must be a list of texts")
        if keyword == "enum" and not value:
            raise InputError(f"{at}.enum is {_shown(value)}; it must have a text at least")
        return list(value)

    return texts


def _count(keyword: str) -> Callable[[Any, str], int]:
    def count(value: Any, at: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{at}.{keyword} is {_shown(value)}; it must be an integer, at least 0")
        return value

    return count


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True


def _shown(value: Any) -> str:
    return ascii(value)[:80] if isinstance(value, str) else repr(value)[:200]


#: What makes a keyword's value plain, of the value and the place of its schema.
VALUES: Mapping[str, Callable[[Any, str], Any]] = {
    "type": lambda value, at: str(value),
    "description": _text,
    "properties": _properties,
    "required": _texts("required"),
    "additionalProperties": _closed,
    "items": lambda value, at: _plain(value, f"{at}[]"),
    "minItems": _count("minItems"),
    "maxItems": _count("maxItems"),
    "enum": _texts("enum"),
}
