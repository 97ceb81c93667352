"""The examples of docs/live.md run and print what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8")


def test_the_examples_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("Stemmer", "bm25s"):
        pytest.importorskip(package, reason=f"words need {package} (extra text)")
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for block, printed in re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "live.md", "exec"), known)
        assert capsys.readouterr().out == printed
    assert known["found"].seq == 2
