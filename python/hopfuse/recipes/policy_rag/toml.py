"""Sections of a policy as TOML, with a comment above each key."""

from __future__ import annotations

import json
from dataclasses import Field, fields
from typing import Any


def write_section(section: Any, name: str) -> str:
    """Return a section as TOML, with a comment above each key."""
    lines = [f"[{name}]"]
    for f in fields(section):
        lines += [f"# {line}" for line in [*f.metadata["doc"].splitlines(), *_range(f)]]
        lines.append(f"{f.name} = {_toml(getattr(section, f.name))}")
    return "\n".join(lines) + "\n"


def _range(f: Field[Any]) -> list[str]:
    choices, low, high = (f.metadata[part] for part in ("choices", "low", "high"))
    if choices is not None:
        return [f"One of {', '.join(quoted(choice) for choice in choices)}."]
    if high is not None:
        return [f"A number in [{low}, {high}]."]
    return [] if low is None else [f"A number, at least {low}."]


def quoted(text: str) -> str:
    """Return a TOML string, which has JSON's escapes and one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if "\n" not in value or any(ord(letter) < 32 and letter not in "\n\t" for letter in value):
        return quoted(value)
    escaped = value.replace("\\", "\\\\").replace('"""', '""\\"')
    escaped = f'{escaped[:-1]}\\"' if escaped.endswith('"') and not escaped.endswith('\\"') else escaped
    return f'"""\n{escaped}"""'.replace("\x7f", "\\u007f")
