"""README.md names every operation and every recipe; its links are valid."""

from __future__ import annotations

import re
from pathlib import Path

import hopfuse as hf
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_operations_has_every_function() -> None:
    table = README.split("| operation | what it gives |")[1].split("\n\n")[0]
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
        assert f"hf.{name}(" in README or f"hopfuse {name}" in README, name


def test_pages_that_it_links_are_there_and_each_recipe_has_one() -> None:
    linked = set(re.findall(r"\]\(((?:docs|examples)/[\w-]+\.\w+)\)", README))
    assert [page for page in sorted(linked) if not (ROOT / page).is_file()] == []
    assert set(re.findall(r"`([\w-]+)` \| \[", README)) == set(hf.recipes.RECIPES)


def test_the_first_example_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert found is not None
    exec(compile(found[1], "README.md", "exec"), {})
    assert capsys.readouterr().out == found[2]
