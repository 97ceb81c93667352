"""Escaping of text, templates, numbers as text, and progress as lines."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any, Self, cast

from .._validation import import_extra
from ..evaluate.comparison import Comparison
from ..evaluate.evaluation import Estimate, Group

if TYPE_CHECKING:
    from rich.progress import TaskID


#: Columns of :func:`comparison_cells`.
COMPARISON_COLUMNS = ("n", "won", "lost", "difference", "95 %", "p", "p (Holm)", "odds ratio", "95 %", "detects")
#: Control characters C0 (without tab and line feed), DEL and C1, marks that change the direction of text, and code
#: points that are not characters, with which a page or a picture would not be well-formed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Return a text with its control characters escaped, so that it is safe to print.

    Titles, texts and names of an index are untrusted: an escape sequence in them could rename the terminal's window,
    or hide or recolour output. Tabs and line feeds are kept.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        Has ``\\x1b`` and the like in place of C0 and C1 control characters and marks of text direction.

    Examples
    --------
    >>> from hopfuse.report import printable
    >>> print(printable("Ada\x1b[31m red\x07"))
    Ada\\x1b[31m red\\x07
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


@cache
def _environment() -> Any:
    jinja2 = import_extra("jinja2", "writing a page")
    loader = jinja2.PackageLoader("hopfuse.report", "templates")
    return jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def render(template: str, **context: Any) -> str:
    """Render a template of this package; strings are escaped, except plots, which the template marks ``safe``.

    Raises
    ------
    MissingExtraError
        Jinja2 is not installed.
    """
    return str(_environment().get_template(template).render(**context))


def group_title(group: Group) -> str:
    """Return a group's label and its number of queries.

    Examples
    --------
    >>> from hopfuse.evaluate import Group
    >>> group_title(Group("2 hops", 197, {}, {}))
    '2 hops: 197 queries'
    """
    return f"{group.label}: {group.queries} {'query' if group.queries == 1 else 'queries'}"


def estimate_cells(estimate: Estimate) -> tuple[str, str, str]:
    """Return a mean in percent, its interval, and n.

    Examples
    --------
    >>> from hopfuse.evaluate import Estimate
    >>> estimate_cells(Estimate(0.5, 8, 0.25, 0.75))
    ('50.0', '25.0 .. 75.0', '8')
    """
    if estimate.n == 0:
        return "-", "", "0"
    return f"{100 * estimate.mean:.1f}", interval_text(estimate.low, estimate.high, 100), str(estimate.n)


def comparison_cells(c: Comparison) -> tuple[str, ...]:
    """Return the cells of :data:`COMPARISON_COLUMNS` for a comparison of at least one query, differences in percent.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import compare
    >>> cells = comparison_cells(compare(np.ones(8), np.zeros(8), binary=True))
    >>> cells[:7]
    ('8', '8', '0', '+100.0', '+100.0 .. +100.0', '0.0078', '0.0078')
    >>> cells[7:]
    ('inf', '1.71 .. inf', '94.5')
    """
    counts = tuple(str(count) for count in (c.n, c.wins, c.losses))
    odds, odds_interval = "-", ""
    if c.odds_ratio is not None and c.wins + c.losses:
        odds, odds_interval = f"{c.odds_ratio:.2f}", interval_text(c.odds_low, c.odds_high, 1, ".2f")
    smallest = c.detectable()
    detects = "-" if smallest is None else f"{100 * smallest:.1f}"
    difference = (f"{100 * c.difference:+.1f}", interval_text(c.low, c.high, 100, "+.1f"))
    return (*counts, *difference, p_text(c.p_value), p_text(c.p_holm), odds, odds_interval, detects)


def p_text(p: float) -> str:
    """Return a p-value in at most seven characters.

    Examples
    --------
    >>> p_text(0.0312), p_text(0.00042), p_text(3e-9), p_text(1.0)
    ('0.031', '0.0004', '<0.0001', '1')
    """
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.2g}"


def interval_text(low: float | None, high: float | None, scale: float, spec: str = ".1f") -> str:
    """Return both ends of an interval, or an empty string if it has none.

    Examples
    --------
    >>> interval_text(0.25, 0.5, 100), interval_text(None, None, 100)
    ('25.0 .. 50.0', '')
    """
    return "" if low is None or high is None else f"{scale * low:{spec}} .. {scale * high:{spec}}"


def shorten(text: str, length: int) -> str:
    """Return at most ``length`` characters of a text.

    Examples
    --------
    >>> shorten("Gerald R. Ford", 8)
    'Gerald …'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


# ---- Progress --------------------------------------------------------------------------------------------------------


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
