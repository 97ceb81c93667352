"""The examples of docs/filters.md run, and it names every type and operator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hopfuse.index.filters import OPERATORS
from hopfuse.index.metadata import TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    known: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for number, block in enumerate(blocks):
        exec(compile(block, f"filters.md, block {number}", "exec"), known)
    assert known["found"].hits.counts.tolist() == [2, 2]
    assert len(known["each"].hits) == 2


def test_it_names_every_type_and_operator() -> None:
    assert [name for name in (*TYPES, *OPERATORS) if f"`{name}`" not in PAGE] == []
