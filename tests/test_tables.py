"""The lists of README.md and docs/ that follow from the package are current."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import hopfuse as hf
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))  # tables.py imports from its own folder


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables_of_docs", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lists_are_current(tables: ModuleType) -> None:
    stale = [page for page in tables.LISTS if tables.current(page) != (ROOT / page).read_text(encoding="utf-8")]
    assert stale == [], f"run: {Path(sys.executable).name} docs/tables.py"


def test_every_recipe_has_a_page_and_a_sentence(tables: ModuleType) -> None:
    rows = [line.split(" | ") for line in tables.recipes("docs/").splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(hf.recipes.RECIPES)
    for name, kind, ranks, says in rows:
        assert (ROOT / kind.partition("(")[2].rstrip(")")).is_file(), name
        assert ranks in ("passages", "entities")
        assert len(says.split()) > 5, name


def test_extras_with_the_same_use_share_it(tables: ModuleType) -> None:
    uses = {"a": "one", "b": "two", "c": "one"}
    project: dict[str, Any] = {"tool": {"hopfuse": {"extras": uses}}, "project": {"optional-dependencies": uses}}
    assert tables.extras(project) == "Extras: `a` and `c` (one), `b` (two)."
    project["project"]["optional-dependencies"] = {"a": [], "b": [], "d": []}
    with pytest.raises(ValueError, match=r"\['c', 'd'\]"):
        tables.extras(project)
