"""Rows of the files that a demo's folders have."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path


def tsv(path: Path) -> Iterator[list[str]]:
    """The rows of a file whose columns are separated by tabs, nothing quoted."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
