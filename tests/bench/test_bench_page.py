"""docs/performance.md, its charts and its CSV files are the report of the committed rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench import report

#: Bytes that a reader gets through.
MOST = 20_000


def test_the_committed_files_are_those_of_the_committed_rows(root: Path) -> None:
    docs = root / "docs"
    command = re.search(r"`python -m bench --report ([^`]+)`", (docs / "performance.md").read_text())
    assert command is not None
    recorded = [root / name for name in command[1].split()]
    rows = [json.loads(line) for file in recorded for line in file.read_text().splitlines()]
    expected = report.files(rows, *(file.name for file in recorded))
    assert {name: (docs / name).read_text(encoding="utf-8") for name in expected} == expected
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("performance*")}
    assert written == set(expected)


def test_the_page_can_be_read_to_its_end(root: Path) -> None:
    assert (root / "docs" / "performance.md").stat().st_size <= MOST


def test_every_missed_target_has_a_cause_or_says_that_it_is_unknown(root: Path) -> None:
    page = (root / "docs" / "performance.md").read_text()
    lines = [line for line in page.splitlines() if ", for a target of " in line]
    assert lines
    assert [
        line for line in lines if report.UNKNOWN not in line and not any(why in line for why in report.WHY.values())
    ] == []


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
