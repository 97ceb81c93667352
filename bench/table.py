"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from .text import COLUMNS, cells

#: Columns of characters where the output is not a terminal.
WIDTH = 180


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print measured rows as a table, then what was skipped or failed."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table(title="hopfuse bench")
    for name in COLUMNS:
        table.add_column(name, no_wrap=True)
    for row in rows:
        if row["status"] == "ok":
            table.add_row(*cells(row))
    if table.row_count:
        console.print(table)
    for row in rows:
        if row["status"] != "ok":
            console.print(f"{row['status']}: {row['case']} / {row['peer'] or 'alone'}: {row['reason']}", markup=False)
