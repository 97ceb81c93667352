"""The sentences of errors, read from the source: a line for each, by room.

    python tests/golden/messages.py

rewrites tests/golden/messages/. A sentence is changed in the source and there, in no other test.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hopfuse import errors

PACKAGE = Path(errors.__file__).parent
FOLDER = Path(__file__).parent / "messages"
#: The errors of a room that it defines itself.
OWN = {"RefusalError", "TransientError", "_UnsupportedError"}
#: What raises or returns a MissingExtraError.
MISSING = {"MissingExtraError", "import_extra", "missing_extra"}
ERRORS = {name for name in errors.__all__ if name.endswith("Error")} | OWN


class Sentence(NamedTuple):
    """One call of an error class."""

    place: str  # file and line
    kind: str
    code: str | None  # "a|b" for one or the other, "*" for that of a parameter, None for another expression
    field: str  # "*" if it is not a literal
    template: str | None  # None if it is not a literal
    values: frozenset[str] | None = None  # names of the values that are given; None if a mapping is among them

    def line(self) -> str:
        """Return the line of the golden file."""
        return f"{self.kind} {self.code} {self.field} | {self.template}\n"


def rooms() -> dict[str, list[Path]]:
    """Return the files of every room; a module of the package itself is in the room ``hopfuse``."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        inner = path.relative_to(PACKAGE)
        if inner.name != "errors.py" or len(inner.parts) > 1:
            found.setdefault(inner.parts[0] if len(inner.parts) > 1 else "hopfuse", []).append(path)
    return found


@functools.cache
def sentences(path: Path) -> tuple[Sentence, ...]:
    """Return the sentences of a file."""
    return tuple(_sentences(path))


def called(node: ast.AST) -> str:
    """Return the last name of what a node calls; ``""`` if it calls nothing that has one."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _sentences(path: Path) -> Iterator[Sentence]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        kind = called(node)
        place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
        if kind in MISSING:
            yield Sentence(place, "MissingExtraError", "missing_extra", "-", " ".join(map(ast.unparse, node.args)))
        elif kind in ERRORS:
            given = (*node.args, *[ast.Constant(0)] * 3)[:3]
            code, (field, template) = _code(given[0]), map(_literal, given[1:])
            names = frozenset(word.arg or "**" for word in node.keywords)
            values = names if "**" not in names and len(node.args) == 3 else None
            yield Sentence(place, kind, code, {None: "*", "None": "-"}.get(field, field), template, values)


def _code(node: ast.expr) -> str | None:
    """Return a code, two codes of which a condition chooses, or ``"*"`` for a parameter."""
    if isinstance(node, ast.IfExp):
        both = _code(node.body), _code(node.orelse)
        return None if None in both else "|".join(map(str, both))
    return "*" if isinstance(node, ast.Name) else _literal(node)


def _literal(node: ast.expr) -> str | None:
    """Return a literal string or ``"None"``; None for an expression."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
        return str(node.value)
    return None


def golden(paths: list[Path]) -> str:
    """Return the golden file of a room."""
    return "".join(sorted(one.line() for path in paths for one in sentences(path)))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for room, paths in rooms().items():
        text = golden(paths)
        if text:
            (FOLDER / f"{room}.txt").write_text(text, encoding="utf-8")
