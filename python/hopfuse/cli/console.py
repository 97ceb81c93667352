"""Progress and notes on stderr, and JSON that is safe to print on a terminal."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ..report import printable

#: Seconds between two lines of progress, if stderr is not a terminal.
LINE_SECONDS = 30.0
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


def progress_bar(get_time: Callable[[], float] = time.monotonic) -> Progress:
    """Return a progress bar on stderr, with counts, the rate per second and the time left.

    If stderr is not a terminal, print them as a line every 30 s and at the end.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        return _ProgressLines(console=console, get_time=get_time, disable=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    return Progress(*columns, console=console, get_time=get_time)


class _ProgressLines(Progress):
    """Progress as lines. The bar is disabled by the caller."""

    _last = 0.0

    def start(self) -> None:
        self._last = self.get_time()

    def stop(self) -> None:
        for task in self.tasks:
            self._print(task)

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        self._print_if_due(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._print_if_due(task_id)

    def _print_if_due(self, task_id: TaskID) -> None:
        if self.get_time() - self._last >= LINE_SECONDS:
            self._last = self.get_time()
            self._print(self._tasks[task_id])

    def _print(self, task: Task) -> None:
        if task.total is None:  # nothing is known of it yet
            return
        speed = task.finished_speed or task.speed
        rate = "" if speed is None else f", {speed:,.0f}/s"
        left = f", {timedelta(seconds=task.time_remaining)} left" if task.time_remaining else ""
        print(f"{task.description} {task.completed:,.0f}/{task.total:,.0f}{rate}{left}", file=sys.stderr, flush=True)


class _Rate(ProgressColumn):
    """The rate per second."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f}/s")
