"""An evaluation as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import MissingExtraError
from .comparison import Comparison
from .evaluation import Estimate, Evaluation, Group

if TYPE_CHECKING:
    from rich.table import Table


#: Of what :func:`comparison_cells` gives.
COMPARISON_COLUMNS = ("n", "wins", "losses", "difference", "odds ratio", "p", "p (Holm)", "detects")


def rich_tables(evaluation: Evaluation) -> list[Table]:
    """Tables for :mod:`rich`: one of means per group of queries, then one of comparisons per group.

    Means and differences are in percent, with their 95 % intervals. p (Holm) is corrected for the number of
    runs; "detects" is the smallest difference that so many queries show with a power of 0.8.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    list of rich.table.Table
        Print them with ``rich.print(*tables)``.

    Raises
    ------
    MissingExtraError
        Rich is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, evaluate, rich_tables
    >>> run = hf.Hits([[1, 5]], [[0.9, 0.1]])
    >>> tables = rich_tables(evaluate({"dense": run}, Qrels(["a"], [[1, 2]]), ["recall@2"], by_hops=False))
    >>> tables[0].title
    'all: 1 query'
    """
    try:
        from rich.table import Table
    except ModuleNotFoundError as error:
        raise MissingExtraError("rich", "cli", "showing an evaluation as tables") from error
    tables = [_means(Table(title=group_title(group)), group, evaluation.metrics) for group in evaluation.groups]
    if evaluation.baseline is not None:
        for group in evaluation.groups:
            title = f"{group_title(group)}, against {evaluation.baseline}"
            tables.append(_comparisons(Table(title=title), group))
    return tables


def group_title(group: Group) -> str:
    """A group's label and its number of queries.

    Examples
    --------
    >>> from hopfuse.evaluate import Group
    >>> group_title(Group("2 hops", 197, {}, {}))
    '2 hops: 197 queries'
    """
    return f"{group.label}: {group.queries} {'query' if group.queries == 1 else 'queries'}"


def _means(table: Table, group: Group, metrics: tuple[str, ...]) -> Table:
    table.add_column("run")
    for metric in metrics:
        table.add_column(metric, justify="right")
    for run, row in group.estimates.items():
        table.add_row(run, *(estimate_cell(row[metric], group.queries) for metric in metrics))
    return table


def estimate_cell(estimate: Estimate, queries: int) -> str:
    """A mean in percent with its interval, and n where it is not that of the group.

    Examples
    --------
    >>> from hopfuse.evaluate import Estimate
    >>> estimate_cell(Estimate(0.5, 8, 0.25, 0.75), 10)
    '50.0 (25.0 .. 75.0), n=8'
    """
    if estimate.n == 0:
        return "-"
    text = f"{100 * estimate.mean:.1f}{_interval(estimate.low, estimate.high, 100)}"
    return text if estimate.n == queries else f"{text}, n={estimate.n}"


def _comparisons(table: Table, group: Group) -> Table:
    table.add_column("run")
    table.add_column("metric")
    for column in COMPARISON_COLUMNS:
        table.add_column(column, justify="right")
    for run, row in group.comparisons.items():
        for metric, c in row.items():
            if c.n:
                table.add_row(run, metric, *comparison_cells(c))
    return table


def comparison_cells(c: Comparison) -> tuple[str, ...]:
    """n, wins, losses, difference in percent, odds ratio, p, p (Holm) and smallest detectable difference.

    Parameters
    ----------
    c : Comparison
        Of at least one query.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import compare
    >>> comparison_cells(compare(np.ones(8), np.zeros(8), binary=True))
    ('8', '8', '0', '+100.0 (+100.0 .. +100.0)', 'inf (1.71 .. inf)', '0.0078', '0.0078', '94.5')
    """
    counts = tuple(str(count) for count in (c.n, c.wins, c.losses))
    difference = f"{100 * c.difference:+.1f}{_interval(c.low, c.high, 100, '+.1f')}"
    odds = "-"
    if c.odds_ratio is not None and c.wins + c.losses:
        odds = f"{c.odds_ratio:.2f}{_interval(c.odds_low, c.odds_high, 1, '.2f')}"
    smallest = c.detectable()
    detects = "-" if smallest is None else f"{100 * smallest:.1f}"
    return (*counts, difference, odds, f"{c.p_value:.2g}", f"{c.p_holm:.2g}", detects)


def _interval(low: float | None, high: float | None, scale: float, spec: str = ".1f") -> str:
    return "" if low is None or high is None else f" ({scale * low:{spec}} .. {scale * high:{spec}})"
