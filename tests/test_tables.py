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
import readme_tables  # noqa: E402


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
    assert tables.extras(project).splitlines()[2:] == ["| `a`, `c` | one |", "| `b` | two |"]
    project["project"]["optional-dependencies"] = {"a": [], "b": [], "d": []}
    with pytest.raises(ValueError, match=r"\['c', 'd'\]"):
        tables.extras(project)


def test_the_table_of_local_walks_has_its_rows_and_times(tables: ModuleType) -> None:
    lines = tables.local_walks().splitlines()
    width = lines[0].count("|")
    assert {line.count("|") for line in lines[2:]} == {width}
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| hotpotqa",
        "| musique-train",
        "| 2wiki-dev300",
        "| atlas",
        "| generated 1e7",
        "| generated 1e8",
    ]
    assert "| 145 → 3.15 |" in lines[6]


def test_markers_without_a_line_between_them_are_refused(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page.md").write_text("a\n<!-- x: python docs/tables.py -->\n<!-- end of x -->\nthe rest\n")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "LISTS", {"page.md": {"x": lambda: "a table"}})
    with pytest.raises(ValueError, match="no place for the list of x"):
        tables.current("page.md")


def test_the_tables_of_scale_by_hand(tables: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {
        "nodes": 10, "stored_entries": 80, "array_bytes_an_entry": 8.0, "array_bytes_a_node": 24.0, "graph_bytes": 880,
        "build_bytes_an_entry": 30.0, "walk_bytes_a_node": {"B=1": 50.0, "B=8": 100.0},
    }  # fmt: skip
    monkeypatch.setattr(tables, "_memory", lambda: measured)
    assert [line.split(" | ")[1] for line in tables.scale_memory().splitlines()[2:]] == [
        "8.0", "24.0", "11.0 an entry", "30 an entry", "50 a node", "100 a node",
    ]  # fmt: skip
    larger = tables.scale_machines().splitlines()[3]
    assert larger == "| 100,000,000 | 12,500,000 | 1.1 GB | 3 GB | 1.2 GB | 8 GB |"
    first = tables.scale_network().splitlines()[2]
    assert first.startswith("| 1,000,000,000 | 8 | 4 GB | 3.2 s | 0.32 s | ")  # 4 bytes of 1.25e8 nodes for 8 queries


def test_the_strongest_other_library_is_the_one_with_the_least_ratio(tmp_path: Path) -> None:
    rows = [
        {"case": case, "status": "ok", "peer": peer, "sizes": {"batch": batch}, "ratio": {"of_medians": ratio}}
        | {"hopfuse": {"median": 0.002}, "peer_time": {"median": 0.002 * ratio}}
        for _, case, batch, today in readme_tables.COMPARED
        for peer, ratio in (("earlier-commit", 1.1), ("scipy", 4.0), ("numba", 3.0), (today, 600.0))
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    shown = readme_tables.speed(file).splitlines()[2:]
    assert len(shown) == len(readme_tables.COMPARED)
    assert all("| 2.0 ms | numba: 6.0 ms | **3.0×** |" in line and "1.2 s | **600×** |" in line for line in shown)


def test_a_changed_result_changes_its_table(tmp_path: Path) -> None:
    found = json.loads(readme_tables.QUALITY.read_text(encoding="utf-8"))
    assert (
        f"**{100 * found['hotpotqa']['folder']['means'][readme_tables.DEFAULT]['recall@5']:.1f}**"
        in readme_tables.quality()
    )
    found["hotpotqa"]["folder"]["means"][readme_tables.DEFAULT]["recall@5"] = 0.7
    file = tmp_path / "side-by-side.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    first = readme_tables.quality(file).splitlines()[2]
    assert "| **84.7** | 70.0 |" in first
    assert "−14.7" in first
