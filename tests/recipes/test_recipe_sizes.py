"""A recipe is a file that is read in one sitting: lines of code are counted, as CONTRIBUTING.md says."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import hopfuse
import pytest

RECIPES = Path(hopfuse.__file__).parent / "recipes"
NAMES = ("phase_graph", "policy_rag", "hybrid_rrf", "triple_hybrid")
MOST = 160
#: What a line may have and still not be one of code.
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines with code: no docstring, no comment alone, none that is blank."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                said.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - said)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("", 0),
        ('"""What it is.\n\nMore."""\n\n# why\n', 0),
        ("def f():\n    '''Docs.'''\n\n    # why\n    return (  # why\n        1,\n\n        2,\n    )\n", 5),
        ('class A:\n    """Docs."""\n\n    text = """one\n\n    two"""\n', 4),
    ],
)
def test_what_counts(source: str, count: int) -> None:
    assert code_lines(source) == count


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_at_most_so_long(name: str) -> None:
    assert 20 <= code_lines((RECIPES / f"{name}.py").read_text(encoding="utf-8")) <= MOST
