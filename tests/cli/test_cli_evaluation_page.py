"""The pages on evaluation: the options of their commands and the imports of their code exist."""

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("evaluation", "compare", "sweep", "diagnose")
PAGE = "\n".join((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.strip()
]
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_parsed(refused_here, tmp_path, monkeypatch, line):
    """The command misses its files, and nothing else."""
    program, name, *arguments = shlex.split(line, comments=True)
    assert program == "hopfuse"
    monkeypatch.chdir(tmp_path)
    refusal = refused_here(name, *arguments)
    assert refusal.code == "missing", refusal
    assert "reason" not in refusal.values, "an error of Click's"


@pytest.mark.parametrize("block", CODE)
def test_code_imports_existing_names(block):
    found = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    for node in found:
        for alias in node.names:
            assert hasattr(import_module(str(node.module)), alias.name)


def test_the_pages_have_commands_and_code():
    assert len(COMMANDS) >= 8
    assert len(CODE) >= 3


def test_the_names_of_the_rooms_that_the_text_gives_exist():
    for room, name in re.findall(r"`(?:hopfuse\.)?(evaluate|diagnose|report)\.(\w+)", PAGE):
        assert hasattr(import_module(f"hopfuse.{room}"), name), f"{room}.{name}"
