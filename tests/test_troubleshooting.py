"""docs/troubleshooting.md quotes messages that exist, and statuses that the server has."""

from __future__ import annotations

import re
from pathlib import Path

from hopfuse.errors import CODES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")


def test_quoted_messages_are_those_of_the_library():
    quoted = re.findall(r"^> `(.*)`$", PAGE, re.MULTILINE)
    assert len(quoted) > 10
    paths = [*(ROOT / "tests/golden/messages").glob("*.txt"), *(ROOT / "python/hopfuse").rglob("*.py")]
    known = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert [message for message in quoted if message not in known] == []


def test_statuses_and_codes_are_those_of_the_page_on_serving():
    serving = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d{3}) `(\w+)`", PAGE, re.MULTILINE)
    assert len(rows) > 5
    for status, code in rows:
        assert code in CODES
        assert re.search(rf"^\| {status} \| .*`{code}`", serving, re.MULTILINE), (status, code)
