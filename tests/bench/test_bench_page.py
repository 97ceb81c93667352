"""docs/performance.md is what the committed rows give."""

from __future__ import annotations

import json
from pathlib import Path

from bench.report import render


def test_the_committed_page_is_that_of_the_committed_rows(root: Path) -> None:
    page = (root / "docs" / "performance.md").read_text()
    names = [
        file.name for file in (root / "bench" / "results").glob("*.jsonl") if f"bench/results/{file.name}`" in page
    ]
    assert len(names) == 1
    recorded = (root / "bench" / "results" / names[0]).read_text().splitlines()
    assert page == render([json.loads(line) for line in recorded], names[0])
