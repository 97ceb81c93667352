"""The lists of README.md and docs/ that follow from the package are current."""

from __future__ import annotations

import importlib.util
import json
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


def test_the_strongest_other_library_is_the_one_with_the_least_ratio(tables: ModuleType, tmp_path: Path) -> None:
    rows = [
        {"case": case, "status": "ok", "peer": peer, "sizes": {"batch": batch}, "ratio": {"of_medians": ratio}}
        | {"hopfuse": {"median": 0.002}, "peer_time": {"median": 0.002 * ratio}}
        for _, case, batch, today in tables.COMPARED
        for peer, ratio in (("earlier-commit", 1.1), ("scipy", 4.0), ("numba", 3.0), (today, 600.0))
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    shown = tables.speed(file).splitlines()[2:]
    assert len(shown) == len(tables.COMPARED)
    assert all("| 2.0 ms | numba: 6.0 ms | **3.0×** |" in line and "1.2 s | **600×** |" in line for line in shown)


def test_a_changed_result_changes_its_table(tables: ModuleType, tmp_path: Path) -> None:
    found = json.loads(tables.QUALITY.read_text(encoding="utf-8"))
    assert f"**{100 * found['hotpotqa']['folder']['means'][tables.DEFAULT]['recall@5']:.1f}**" in tables.quality()
    found["hotpotqa"]["folder"]["means"][tables.DEFAULT]["recall@5"] = 0.7
    file = tmp_path / "side-by-side.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    first = tables.quality(file).splitlines()[2]
    assert "**70.0**" in first
    assert "−14.7" in first
