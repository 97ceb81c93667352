"""The examples of docs/stores.md run and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_the_page_says():
    pytest.importorskip("pyarrow")
    block, said = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.S)[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "stores.md", "exec"), {})
    assert printed.getvalue() == said
