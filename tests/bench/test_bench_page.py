"""docs/performance.md is the report of the committed rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.report import render


def test_the_committed_page_is_that_of_the_committed_rows(root: Path) -> None:
    page = (root / "docs" / "performance.md").read_text()
    command = re.search(r"`python -m bench --report ([^`]+)`", page)
    assert command is not None
    files = [root / name for name in command[1].split()]
    recorded = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert page == render(recorded, *(file.name for file in files))


def test_the_committed_page_states_whether_a_gpu_was_used(root: Path) -> None:
    page = (root / "docs" / "performance.md").read_text()
    files = (root / "bench" / "results").glob("*.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert ("Nothing on this page was measured on a GPU" not in page) == any(row.get("device") for row in rows)


def test_the_committed_page_names_each_machine_once(root: Path) -> None:
    page = (root / "docs" / "performance.md").read_text()
    named = re.findall(r"\(family/model [\d/]+\)", page)
    assert named
    assert len(named) == len(set(named))
