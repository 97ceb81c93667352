"""Pages of docs/: Python code of the guides runs, links and anchors are valid, commands and options exist."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import hopfuse
import pytest
from hopfuse.cli import app
from hopfuse.cli.score import STAGES

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "start.md", DOCS / "retriever.md", *sorted((DOCS / "guides").glob("*.md")))
ALL = (*sorted(DOCS.rglob("*.md")), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md")


def python_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.usefixtures("model_in_memory")
@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=lambda page: page.stem)
def test_its_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = python_of(page)
    for module in ("igraph", "wordllama"):
        if any(module in block.lower() for block in blocks):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page.name}, block {number}", "exec"), known)
    assert {"found", "scores"} & known.keys()  # what a page's last block computes


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_its_links_lead_to_pages(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def commands_of(page: Path) -> list[list[str]]:
    """Return the words of each ``hopfuse`` command in a page's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    parts = [part.strip() for line in lines for part in line.split(" && ")]
    return [shlex.split(part, comments=True)[1:] for part in parts if part.startswith("hopfuse ")]


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_its_commands_have_these_options(page: Path) -> None:
    unknown = []
    for name, *words in commands_of(page):
        command = STAGES.get(words[0], app.app.commands[name]) if name == "score" else app.app.commands[name]
        if not command.context_settings.get("ignore_unknown_options"):  # bench passes them on
            options = {
                option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            given = {word.partition("=")[0] for word in words if word.startswith("--")}
            unknown += [f"{name} {option}" for option in sorted(given - options)]
    assert unknown == []


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_its_anchors_are_headings(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]*\.md|)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    missing = []
    for target, anchor in links:
        text = (page.parent / target if target else page).read_text(encoding="utf-8")
        if anchor not in {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}:
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_every_page_is_on_the_site() -> None:
    trees = re.findall(r"```{toctree}\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    listed = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    pages = {page.relative_to(DOCS).as_posix().removesuffix(".md") for page in DOCS.rglob("*.md")} - {"index"}
    packages = {page for page in pages if page.startswith("api/")} - {"api/index"}  # tests/test_api_pages.py
    assert sorted(listed) == sorted(pages - packages)


def test_the_glossary_is_in_order_and_defines_each_word_once() -> None:
    terms = re.findall(r"^- \*\*([\w ]+)\*\*: \S", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert terms == sorted(set(terms))
    asked = {
        "leg",
        "seed",
        "restart",
        "walk",
        "lane",
        "pass",
        "recipe",
        "reader",
        "state",
        "pool",
        "hit",
        "trace",
        "variant",
    }
    assert asked | {"isolated", "allow", "snapshot", "generation", "seq", "slot", "part", "node weights"} <= set(terms)


def test_contributing_names_files_that_exist() -> None:
    root = DOCS.parent
    named = re.findall(r"`([\w.-]+/[\w./-]+)`", (root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    paths = [path for path in named if "NAME" not in path]
    assert len(paths) > 40
    assert [path for path in paths if not ((root / path).exists() or (root / "python/hopfuse" / path).exists())] == []


def test_one_version_everywhere() -> None:
    root = DOCS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project  # it is read from hopfuse.__version__
    assert project["dynamic"] == ["version"]
    assert importlib.metadata.version("hopfuse") == hopfuse.__version__
    assert f"\nversion: {hopfuse.__version__}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
