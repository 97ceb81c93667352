"""An evaluation as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import MissingExtraError
from .evaluation import Estimate, Evaluation, Group

if TYPE_CHECKING:
    from rich.table import Table


def rich_tables(evaluation: Evaluation) -> list[Table]:
    """Tables for :mod:`rich`: one of means per group of queries, then one of comparisons per group.

    Means are in percent, with the Wilson 95 % interval of metrics whose values are 0 or 1.

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
    tables = [_means(Table(title=_title(group)), group, evaluation.metrics) for group in evaluation.groups]
    if evaluation.baseline is not None:
        for group in evaluation.groups:
            title = f"{_title(group)}, against {evaluation.baseline}"
            tables.append(_comparisons(Table(title=title), group))
    return tables


def _title(group: Group) -> str:
    return f"{group.label}: {group.queries} {'query' if group.queries == 1 else 'queries'}"


def _means(table: Table, group: Group, metrics: tuple[str, ...]) -> Table:
    table.add_column("run")
    for metric in metrics:
        table.add_column(metric, justify="right")
    for run, row in group.estimates.items():
        table.add_row(run, *(_cell(row[metric], group.queries) for metric in metrics))
    return table


def _cell(estimate: Estimate, queries: int) -> str:
    if estimate.n == 0:
        return "-"
    text = f"{100 * estimate.mean:.1f}"
    if estimate.low is not None and estimate.high is not None:
        text += f" ({100 * estimate.low:.1f} .. {100 * estimate.high:.1f})"
    return text if estimate.n == queries else f"{text}, n={estimate.n}"


def _comparisons(table: Table, group: Group) -> Table:
    table.add_column("run")
    table.add_column("metric")
    for column in ("n", "wins", "losses", "both", "neither", "p"):
        table.add_column(column, justify="right")
    for run, row in group.comparisons.items():
        for metric, c in row.items():
            counts = (str(count) for count in (c.n, c.wins, c.losses, c.both, c.neither))
            table.add_row(run, metric, *counts, f"{c.p_value:.3g}")
    return table
