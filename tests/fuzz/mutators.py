"""Changes of inputs within their formats: of JSON by its values, of lines one by one."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from fuzz.targets import Mutate, Plain

#: Values that may stand where another is expected.
ODD: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 2**31, 2**53 + 1, 2**63, 2**64, 10**40, -(10**400), 0.5, 1e308, -1e-320,
    float("nan"), float("inf"), -float("inf"), "", " ", "\0", "\ud800", "\u2028", "é" * 9, "a" * 300, "1", "-0",
    "1e999", "../../etc/passwd", "%s{0}", "{field}", [], [[]], [None], [True], [0], [-1], ["a"], [["a", "b", "c"]],
    [1.0, 2.0], [float("nan")], [1e308], {}, {"a": {}}, {"": 0}, {"a": None}, {"id": "a"},
]  # fmt: skip


def json_values(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Change some values of a JSON text, a fifth of the time its bytes."""
    if draw.random() < 0.2:
        return plain(data, most)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return plain(data, most)
    found = _written(changed(value, draw))
    return found if len(found) <= most else plain(data, most)


def json_lines(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Change some values of a line of JSON, or repeat, swap or drop lines; a fifth of the time bytes."""
    lines = data.splitlines(keepends=True)
    if not lines or draw.random() < 0.2:
        return plain(data, most)
    at, what = draw.randrange(len(lines)), draw.random()
    if what < 0.15:
        lines.insert(draw.randrange(len(lines) + 1), lines[at])
    elif what < 0.25:
        del lines[at]
    else:
        end = b"\n" if lines[at].endswith(b"\n") else b""
        lines[at] = json_values(lines[at], most, draw, plain).rstrip(b"\n") + end
    return b"".join(lines)[:most]


def fields_of_lines(*values: bytes) -> Mutate:
    """Return a change of lines with fields: one of them becomes another of its kind, an odd one, or is dropped."""

    def mutate(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
        lines = data.split(b"\n")
        if draw.random() < 0.4:
            return plain(data, most)
        at = draw.randrange(len(lines))
        separator = b"\t" if b"\t" in lines[at] else b" "
        fields = lines[at].split(separator)
        place, what = draw.randrange(len(fields)), draw.random()
        if what < 0.2:
            fields[place] = draw.choice(draw.choice(lines).split(separator))
        elif what < 0.6:
            fields[place] = draw.choice(values)
        elif what < 0.7:
            del fields[place]
        elif what < 0.8:
            fields.insert(place, fields[place])
        elif what < 0.9:
            lines.insert(at, lines[at])
        else:
            fields[place] = plain(fields[place], 40)
        lines[at] = separator.join(fields)
        return b"\n".join(lines)[:most]

    return mutate


def changed(value: Any, draw: random.Random) -> Any:
    """Return a JSON value with one to three of its parts changed, taken away, repeated, or one more."""
    body = copy.deepcopy([value])
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        holder, key = draw.choice(_places(body))
        what = draw.random()
        if what < 0.45:
            holder[key] = copy.deepcopy(draw.choice(ODD))
        elif what < 0.65:
            other, place = draw.choice(_places(body))
            holder[key] = copy.deepcopy(other[place])
        elif what < 0.8 and holder is not body:
            del holder[key]
        elif what < 0.93 and isinstance(holder, list) and holder is not body:
            holder[key:key] = [copy.deepcopy(holder[key])] * draw.choice((1, 1, 3))
        elif isinstance(holder, dict):
            holder[draw.choice(("", "id", "text", "metadata", key.upper(), "\ud800"))] = copy.deepcopy(draw.choice(ODD))
    return body[0]


def _places(body: list[Any]) -> list[tuple[Any, Any]]:
    """Return the place of each value: what holds it, and its key there."""
    found: list[tuple[Any, Any]] = []
    left: list[Any] = [body]
    while left:
        holder = left.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                left.append(holder[key])
    return found


def _written(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # half a character, which JSON writes by its number
        return json.dumps(value).encode()
