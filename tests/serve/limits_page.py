"""The table of limits of docs/operate.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operate.md"
UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "s": 1.0}
ROW = re.compile(r"^\| `(\w+)`( \\\*)? \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


class Row(NamedTuple):
    """A limit; ``default`` is None if it is no number."""

    key: str
    needs_restart: bool
    default: float | None
    of: str
    counted: str
    refusals: list[tuple[int, str]]


def rows() -> list[Row]:
    """The rows of the table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| Key | Default | Of |") :].partition("\n\n")[0]
    found = [_row(*one) for one in ROW.findall(table)]
    assert len(found) == table.count("\n") - 1  # the heads apart
    return found


def _row(key: str, star: str, default: str, of: str, counted: str, beyond: str) -> Row:
    number = re.fullmatch(r"([\d,]+) ?(KiB|MiB|s|)", default)
    value = None if number is None else int(number[1].replace(",", "")) * UNITS[number[2]]
    refusals = [(int(status), code) for status, code in re.findall(r"(\d{3}) `(\w+)`", beyond)]
    assert len(re.findall(r"\b[45]\d\d\b", beyond)) == len(refusals), beyond
    return Row(key, bool(star), value, of, counted, refusals)
