"""The table that a run prints at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from .text import SECTIONS

#: Width in characters if the output is not a terminal.
WIDTH = 180


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print measured rows as a table, then what was skipped or failed."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    measured = [row for row in rows if row["status"] == "ok"]
    for title, (columns, cells, of_section) in SECTIONS.items():
        lines = [cells(row) for row in measured if of_section(row)]
        if lines:
            table = Table(*(Column(name, no_wrap=True) for name in columns), title=title)
            for line in lines:
                table.add_row(*line)
            console.print(table)
    for row in rows:
        if row["status"] != "ok":
            console.print(f"{row['status']}: {row['case']} / {row['peer'] or 'alone'}: {row['reason']}", markup=False)
