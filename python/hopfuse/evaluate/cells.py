"""Numbers of an evaluation as text."""

from __future__ import annotations

from .comparison import Comparison
from .evaluation import Estimate, Group

#: Of what :func:`comparison_cells` gives.
COMPARISON_COLUMNS = ("n", "won", "lost", "difference", "95 %", "p", "p (Holm)", "odds ratio", "95 %", "detects")


def group_title(group: Group) -> str:
    """A group's label and its number of queries.

    Examples
    --------
    >>> from hopfuse.evaluate import Group
    >>> group_title(Group("2 hops", 197, {}, {}))
    '2 hops: 197 queries'
    """
    return f"{group.label}: {group.queries} {'query' if group.queries == 1 else 'queries'}"


def estimate_cells(estimate: Estimate) -> tuple[str, str, str]:
    """A mean in percent, its interval, and n.

    Examples
    --------
    >>> from hopfuse.evaluate import Estimate
    >>> estimate_cells(Estimate(0.5, 8, 0.25, 0.75))
    ('50.0', '25.0 .. 75.0', '8')
    """
    if estimate.n == 0:
        return "-", "", "0"
    return f"{100 * estimate.mean:.1f}", interval(estimate.low, estimate.high, 100), str(estimate.n)


def estimate_cell(estimate: Estimate, queries: int) -> str:
    """A mean in percent with its interval, and n where it is not that of the group.

    Examples
    --------
    >>> from hopfuse.evaluate import Estimate
    >>> estimate_cell(Estimate(0.5, 8, 0.25, 0.75), 10)
    '50.0 (25.0 .. 75.0), n=8'
    """
    mean, sure, n = estimate_cells(estimate)
    text = f"{mean} ({sure})" if sure else mean
    return text if estimate.n in (0, queries) else f"{text}, n={n}"


def comparison_cells(c: Comparison) -> tuple[str, ...]:
    """What :data:`COMPARISON_COLUMNS` names; differences in percent.

    Parameters
    ----------
    c : Comparison
        Of at least one query.

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
    odds, odds_sure = "-", ""
    if c.odds_ratio is not None and c.wins + c.losses:
        odds, odds_sure = f"{c.odds_ratio:.2f}", interval(c.odds_low, c.odds_high, 1, ".2f")
    smallest = c.detectable()
    detects = "-" if smallest is None else f"{100 * smallest:.1f}"
    difference = (f"{100 * c.difference:+.1f}", interval(c.low, c.high, 100, "+.1f"))
    return (*counts, *difference, p_text(c.p_value), p_text(c.p_holm), odds, odds_sure, detects)


def p_text(p: float) -> str:
    """A p-value in at most seven characters.

    Examples
    --------
    >>> p_text(0.0312), p_text(0.00042), p_text(3e-9), p_text(1.0)
    ('0.031', '0.0004', '<0.0001', '1')
    """
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.2g}"


def interval(low: float | None, high: float | None, scale: float, spec: str = ".1f") -> str:
    """Two ends, or nothing.

    Examples
    --------
    >>> interval(0.25, 0.5, 100), interval(None, None, 100)
    ('25.0 .. 50.0', '')
    """
    return "" if low is None or high is None else f"{scale * low:{spec}} .. {scale * high:{spec}}"
