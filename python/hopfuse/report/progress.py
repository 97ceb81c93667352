"""Progress as lines of text, for logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from rich.progress import TaskID


@dataclass
class _Task:
    name: str
    total: float | None
    begun: float
    done: float = 0.0
    #: When the last line was printed, and what was done by then.
    last: tuple[float, float] = (0.0, 0.0)
    #: When everything was done.
    finished: float | None = None


class ProgressLines:
    """Print the progress of tasks as lines on stderr: counts, the rate per second and the time left.

    Has the methods of Rich's ``Progress`` that a task needs, so that either can show it.

    Parameters
    ----------
    seconds : float
        Least time between two lines. Each task also has a line at the end.
    get_time : callable
        Returns the time in seconds.

    Examples
    --------
    >>> import sys
    >>> from contextlib import redirect_stderr
    >>> from hopfuse.report import ProgressLines
    >>> clock = iter([0.0, 0.0, 2.0])
    >>> with redirect_stderr(sys.stdout), ProgressLines(get_time=lambda: next(clock)) as lines:
    ...     lines.advance(lines.add_task("Scoring", total=3000), 3000)
    Scoring 3,000/3,000, 1,500/s
    """

    def __init__(self, seconds: float = 30.0, *, get_time: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._get_time = seconds, get_time
        self._tasks: list[_Task] = []
        self._printed = get_time()

    def add_task(self, description: str, total: float | None = None) -> TaskID:
        """Begin a task, and return its number; no line is printed while ``total`` is None."""
        now = self._get_time()
        self._tasks.append(_Task(description, total, now, last=(now, 0.0)))
        return cast("TaskID", len(self._tasks) - 1)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Count further work as done."""
        self.update(task_id, completed=self._tasks[task_id].done + advance)

    def update(self, task_id: TaskID, *, completed: float, total: float | None = None) -> None:
        """Set how much is done, and the total if it is given."""
        task, now = self._tasks[task_id], self._get_time()
        task.done, task.total = completed, task.total if total is None else total
        if task.total is not None and task.done >= task.total:
            task.finished = now if task.finished is None else task.finished
        elif task.total is not None and now - self._printed >= self._seconds:
            self._printed = now
            self._print(task, now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks:
            self._print(task, self._get_time() if task.finished is None else task.finished)

    def _print(self, task: _Task, now: float) -> None:
        if task.total is None:  # nothing is known of it yet
            return
        since, before = task.last if task.finished is None else (task.begun, 0.0)
        rate = (task.done - before) / (now - since) if now > since else 0.0
        speed = f", {rate:,.0f}/s" if rate else ""
        to_do = ceil((task.total - task.done) / rate) if rate else 0
        left = f", {timedelta(seconds=to_do)} left" if to_do > 0 else ""
        print(f"{task.name} {task.done:,.0f}/{task.total:,.0f}{speed}{left}", file=sys.stderr, flush=True)
        task.last = (now, task.done)
