"""Print a command of the README ("atlas" or "tests"), one step per line, so that CI runs what users run.

The command is a line of a fenced block that starts with ``python3 -m venv``, ends in ``python examples/atlas`` or
``pytest -n auto --dist loadfile``, and joins its steps with ``&&``.
"""

from __future__ import annotations

import sys
from pathlib import Path

ENDINGS = {"atlas": "/python examples/atlas", "tests": "/pytest -n auto --dist loadfile"}


def fenced_lines(text: str) -> list[str]:
    """Return the lines inside fenced code blocks, with continued lines joined."""
    lines, inside = [], False
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            lines.append(line.strip().removeprefix("$ "))
    return lines


def command(text: str, kind: str) -> list[str]:
    """Return the steps of the only command of this kind."""
    found = [
        line for line in fenced_lines(text) if line.startswith("python3 -m venv ") and line.endswith(ENDINGS[kind])
    ]
    if len(set(found)) != 1:
        raise SystemExit(
            f"README.md must have one command for {kind!r} in a fenced block: a line that starts with "
            f"'python3 -m venv' and ends with '{ENDINGS[kind]}'; found {found or 'none'}"
        )
    return [step.strip() for step in found[0].split("&&")]


if __name__ == "__main__":
    print("\n".join(command(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2])))
