"""An evaluation as tables for the terminal, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from .cells import COMPARISON_COLUMNS, comparison_cells, estimate_cells, group_title
from .distributions import ScoreDistribution
from .evaluation import Evaluation, Group

if TYPE_CHECKING:
    from rich.table import Table


def rich_tables(evaluation: Evaluation) -> list[Table]:
    """Tables for :mod:`rich`: the means of each group of queries, then its comparisons, in two tables.

    Means and differences are in percent, with their 95 % intervals. p (Holm) is corrected for the number of
    runs; "detects" is the smallest difference that so many queries show with a power of 0.8. Nothing is cut off at
    80 columns; longer names of runs take more lines.

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
    >>> tables[0].title.plain
    'all: 1 query'
    """
    tables = [_means(group, evaluation.metrics) for group in evaluation.groups]
    for group in evaluation.groups:
        if any(c.n for row in group.comparisons.values() for c in row.values()):
            title = f"{group_title(group)}, against {evaluation.baseline}"
            tables.append(_compared(title, group, slice(0, 7)))
            tables.append(_compared(f"{title}: odds, and what so many detect", group, slice(7, 10)))
    return tables


def score_table(distributions: Mapping[str, Mapping[str, ScoreDistribution]]) -> Table:
    """A table for :mod:`rich` of what :func:`score_distributions` found: medians, and how well scores tell hits apart.

    Raises
    ------
    MissingExtraError
        Rich is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, Run, score_distributions, score_table
    >>> runs = {"dense": Run(hf.Hits([[4, 7]], [[3.0, 2.0]]))}
    >>> score_table(score_distributions(runs, Qrels(["a"], gold=[[4]]))).row_count
    2
    """
    title = "scores before and after calibration, of all queries"
    made = plain_table(title, ["run", "scores", "relevant", "median", "other", "median", "AUC"], words=2)
    for run, kinds in distributions.items():
        for kind, found in kinds.items():
            counts = [f"{int(part.sum()):,}" for part in (found.relevant, found.other)]
            numbers = ["-" if v is None else f"{v:.3g}" for v in (found.relevant_median, found.other_median, found.auc)]
            made.add_row(*cells(run, kind, counts[0], numbers[0], counts[1], numbers[1], numbers[2]))
    return made


def query_tables(evaluation: Evaluation, traces: Mapping[str, Mapping[str, Any]], show: int = 3) -> list[Table]:
    """Tables for :mod:`rich` of queries won and lost under the first metric: their gold passages' ranks in each run.

    Parameters
    ----------
    evaluation : Evaluation
        With a baseline, else there is no table.
    traces : mapping of str to mapping
        What :func:`traces` gives for these queries.
    show : int
        At most so many queries in each table.

    Raises
    ------
    MissingExtraError
        Rich is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, evaluate, query_tables, traces
    >>> names = PassageNames()
    >>> qrels = Qrels(["q1"], [[names.number("doc")]])
    >>> runs = {"dense": Run(hf.Hits([[5]], [[0.5]])), "graph": Run(hf.Hits([[0]], [[0.5]]))}
    >>> names.number("x"), len([names.number(f"y{i}") for i in range(5)])
    (1, 5)
    >>> result = evaluate(runs, qrels, ["hit@1"], baseline="dense")
    >>> [table.title.plain for table in query_tables(result, traces(["q1"], runs, qrels, names))]
    ['hit@1, won by graph against dense: 1 of 1']
    """
    metric, made = evaluation.metrics[0], []
    for run in evaluation.runs if evaluation.baseline is not None and show > 0 else ():
        if run == evaluation.baseline:
            continue
        for word, queries in (("won", evaluation.wins(run, metric)), ("lost", evaluation.losses(run, metric))):
            if queries:
                title = f"{metric}, {word} by {run} against {evaluation.baseline}"
                made.append(_queries(title, queries, traces, show))
    return made


def plain_table(title: str, columns: Sequence[str], words: int = 1) -> Table:
    """An empty table of narrow columns, the first ``words`` of which hold text; titles are taken as they stand.

    Raises
    ------
    MissingExtraError
        Rich is not installed.

    Examples
    --------
    >>> len(plain_table("all", ["run", "mean"]).columns)
    2
    """
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError as error:
        raise MissingExtraError("rich", "cli", "showing an evaluation as tables") from error
    made = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for at, column in enumerate(columns):
        if at < words:
            made.add_column(column, overflow="fold")
        else:
            made.add_column(column, justify="right", no_wrap=True)
    return made


def cells(*words: str) -> list[Any]:
    """Text that is shown as it stands, whatever brackets it has.

    Examples
    --------
    >>> cells("[red]")[0].plain
    '[red]'
    """
    from rich.text import Text

    return [Text(word) for word in words]


def _means(group: Group, metrics: tuple[str, ...]) -> Table:
    made = plain_table(group_title(group), ["metric", "run", "mean", "95 %", "n"], words=2)
    for metric in metrics:
        for at, (run, row) in enumerate(group.estimates.items()):
            made.add_row(*cells("" if at else metric, run, *estimate_cells(row[metric])))
    return made


def _compared(title: str, group: Group, part: slice) -> Table:
    made = plain_table(title, ["", *COMPARISON_COLUMNS[part]])
    for run, row in group.comparisons.items():
        made.add_row(*cells(run), style="bold")
        for metric, c in row.items():
            if c.n:
                made.add_row(*cells(metric, *comparison_cells(c)[part]))
    return made


def _queries(title: str, queries: Sequence[str], traces: Mapping[str, Mapping[str, Any]], show: int) -> Table:
    shown = queries[:show]
    runs = list(traces[shown[0]]["first"])
    made = plain_table(f"{title}: {len(shown)} of {len(queries)}", ["", *(f"{run}" for run in runs)])
    for query in shown:
        for line in _lines(traces[query], runs):
            made.add_row(*cells(*line))
    return made


def _lines(trace: Mapping[str, Any], runs: Sequence[str]) -> Iterator[list[str]]:
    yield [f"{trace['id']}  {trace['question']}".rstrip()]
    for passage in trace["gold"]:
        hop = "" if passage["hop"] is None else f"hop {passage['hop']}: "
        found = [passage["runs"][run] for run in runs]
        yield [f"  {hop}{passage['title'] or passage['id']}", *("-" if f is None else str(f["rank"]) for f in found)]
    for run, answer in trace.get("answers", {}).items():
        yield [f"  {run} answers {answer!r}, accepted {', '.join(map(repr, trace['accepted'])) or 'none'}"]
