"""Pages of docs/ that a reader begins with: their Python runs, their links lead somewhere, their commands exist."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import hopfuse
import pytest
from hopfuse.cli import app

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "start.md", *sorted((DOCS / "guides").glob("*.md")))


def python_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


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


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_its_links_lead_to_pages(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_commands_of_the_guides_exist() -> None:
    known = set(app.app.commands)
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            used = set(re.findall(r"^hopfuse (\w+)", block, re.MULTILINE))
            assert used - known == set(), page.name


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
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
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages | {"api/index"})


def test_one_version_everywhere() -> None:
    root = DOCS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project  # it is read from hopfuse.__version__
    assert project["dynamic"] == ["version"]
    assert importlib.metadata.version("hopfuse") == hopfuse.__version__
    assert f"\nversion: {hopfuse.__version__}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
