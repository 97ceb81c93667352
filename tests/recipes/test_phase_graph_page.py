"""The examples of docs/phase-graph.md run, one after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hopfuse as hf

PAGE = Path(__file__).parents[2] / "docs" / "phase-graph.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 6
    known: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), known)
        assert isinstance(known["found"], hf.recipes.PhaseGraphResult)
    assert known["before"]["rank"] in (1, 2, 3)
    assert known["shared"].hits.counts.tolist() == [2]
