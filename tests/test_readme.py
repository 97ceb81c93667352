"""README.md's links and example are valid; docs/operations.md names every operation, docs/retriever.md every recipe."""

from __future__ import annotations

import re
from pathlib import Path

import hopfuse as hf
import pytest

ROOT = Path(__file__).resolve().parents[1]
README, OPERATIONS, RETRIEVER = (
    (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/operations.md", "docs/retriever.md")
)


def test_the_table_of_operations_has_every_function() -> None:
    table = OPERATIONS.split("| operation | what it gives |")[1].split("\n\n")[0]
    elsewhere = {
        "backend_info",
        "cancellation",
        "estimate_device_memory",
        "free_device_memory",
        "selftest",
    }  # of the library itself, not of scores
    functions = {
        name
        for name in hf.__all__
        if callable(getattr(hf, name)) and not isinstance(getattr(hf, name), type) and name not in elsewhere
    }
    assert {"ppr", "project", "project_topk", "dice_scores", "ising_rerank"} <= functions
    assert functions - set(re.findall(r"hf\.(\w+)\(", table)) == set()
    for name in elsewhere:
        assert f"hf.{name}(" in OPERATIONS or f"hopfuse {name}" in OPERATIONS, name


def test_pages_that_it_links_are_there_and_each_recipe_has_one() -> None:
    linked = set(re.findall(r"\]\(([\w/.-]+\.\w+)(?:#[\w-]+)?\)", README))
    assert len(linked) > 20
    assert [page for page in sorted(linked) if not (ROOT / page).is_file()] == []
    assert set(re.findall(r"`([\w-]+)` \| \[", RETRIEVER)) == set(hf.recipes.RECIPES)


@pytest.mark.parametrize("page", ["README.md", "docs/operations.md"])
def test_the_first_example_prints_what_is_shown(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("wordllama", "bm25s") if page == "README.md" else ():
        pytest.importorskip(package, reason="the example needs the extra demo")
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    exec(compile(found[1], page, "exec"), {})
    assert capsys.readouterr().out == found[2]


def test_readme_is_short() -> None:
    assert len(README.encode()) < 10_000
