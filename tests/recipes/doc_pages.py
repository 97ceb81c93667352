"""A page of docs/, and its examples, which run one after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def run_examples(page: Path, count: int, found: type) -> dict[str, Any]:
    """Run the page's examples, ``count`` of them, each leaving a ``found`` of this type; gives what they know."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == count
    known: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page.name}, block {number}", "exec"), known)
        assert isinstance(known["found"], found)
    return known
