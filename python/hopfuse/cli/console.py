"""Progress and notes on stderr, and JSON that is safe to print on a terminal."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ..report import ProgressLines, printable

#: Control characters that JSON does not have to escape, and those that change the direction of text.
_CONTROL = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def json_text(value: Any) -> str:
    r"""Return JSON to print on a terminal, with every control character escaped.

    Examples
    --------
    >>> print(json_text({"title": "\x9b31m"}))
    {
      "title": "\u009b31m"
    }
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: Any) -> Any:
    """Return a time in ISO 8601, and any other value that JSON does not know as a list."""
    return value.isoformat() if isinstance(value, datetime) else list(value)


def note(text: str) -> None:
    """Print lines on stderr, unwrapped."""
    Console(stderr=True).print(printable(text), soft_wrap=True, highlight=False, markup=False)


def progress_bar() -> Progress | ProgressLines:
    """Return a progress bar on stderr, with counts, the rate per second and the time left.

    If stderr is not a terminal, they are lines: one every 30 s and one at the end.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        return ProgressLines()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    return Progress(*columns, console=console)


class _Rate(ProgressColumn):
    """The rate per second."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f}/s")
