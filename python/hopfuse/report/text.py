"""Escaping of text, templates, and numbers as text."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import MissingExtraError
from ..evaluate.comparison import Comparison
from ..evaluate.evaluation import Estimate, Group

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
    try:
        jinja2 = import_module("jinja2")
    except ModuleNotFoundError as error:
        raise MissingExtraError("jinja2", "report", "writing a page") from error
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
