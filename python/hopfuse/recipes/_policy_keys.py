"""Sections of a policy: what each key means and may be, kept beside its default."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, TypeVar

from ..errors import InputError

S = TypeVar("S")


def key(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A key of a section: its default, what it means, and what it may be."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high, "choices": choices})


def check_section(section: Any, name: str) -> None:
    """Refuse values of another type, or outside what their keys allow."""
    for f in fields(section):
        object.__setattr__(section, f.name, _checked(f, getattr(section, f.name), f"{name}.{f.name}"))


def read_section(kind: type[S], table: Any, name: str) -> S:
    """A section from a table of TOML; keys that it lacks have their defaults."""
    if not isinstance(table, Mapping):
        raise InputError(f"{name} is {table!r}; it must be a table: [{name}]")
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise InputError(f"[{name}] has the key {unknown[0]!r}; allowed: {', '.join(known)}")
    return kind(**table)


def write_section(section: Any, name: str) -> str:
    """A section as TOML, each key below what it means."""
    lines = [f"[{name}]"]
    for f in fields(section):
        lines += [f"# {line}" for line in [*f.metadata["doc"].splitlines(), *_range(f)]]
        lines.append(f"{f.name} = {_toml(getattr(section, f.name))}")
    return "\n".join(lines) + "\n"


def _checked(f: Field[Any], value: Any, name: str) -> Any:
    default = f.default
    if isinstance(default, bool):
        return _refuse_unless(isinstance(value, bool), value, name, "true or false")
    if isinstance(default, str):
        choices = f.metadata["choices"]
        text = isinstance(value, str) and value.strip() != "" and (choices is None or value in choices)
        return _refuse_unless(text, value, name, "a text, not blank" if choices is None else "one of " + _list(choices))
    low, high = f.metadata["low"], f.metadata["high"]
    whole = isinstance(default, int)
    number = isinstance(value, int | (int if whole else float)) and not isinstance(value, bool)
    allowed = number and _is_finite(value) and (low is None or value >= low) and (high is None or value <= high)
    _refuse_unless(allowed, value, name, f"{'a whole' if whole else 'a finite'} number{_bounds(low, high)}")
    return int(value) if whole else float(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _refuse_unless(fine: bool, value: Any, name: str, allowed: str) -> Any:
    if not fine:
        raise InputError(f"{name} is {value!r}; it must be {allowed}")
    return value


def _bounds(low: float | None, high: float | None) -> str:
    if high is not None:
        return f" in [{low}, {high}]"
    return "" if low is None else f", at least {low}"


def _range(f: Field[Any]) -> list[str]:
    if f.metadata["choices"] is not None:
        return [f"One of {_list(f.metadata['choices'])}."]
    bounds = _bounds(f.metadata["low"], f.metadata["high"])
    return [f"A number{bounds}."] if bounds else []


def _list(choices: tuple[str, ...]) -> str:
    return ", ".join(f'"{choice}"' for choice in choices)


def one_line(text: str) -> str:
    """A string of TOML; its escapes are those of JSON, and one more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if "\n" not in value or any(ord(letter) < 32 and letter not in "\n\t" for letter in value):
        return one_line(value)
    escaped = value.replace("\\", "\\\\").replace('"""', '""\\"')
    escaped = f'{escaped[:-1]}\\"' if escaped.endswith('"') and not escaped.endswith('\\"') else escaped
    return f'"""\n{escaped}"""'.replace("\x7f", "\\u007f")
