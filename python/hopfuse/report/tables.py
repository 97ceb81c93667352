"""A table for a terminal, HTML or JSON, and the tables of evaluations, sweeps and diagnoses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .._validation import import_extra
from ..evaluate.curves import Curve, ScoreDistribution, option_curves
from ..evaluate.evaluation import Evaluation, Group
from ..evaluate.sweep import Options, Sweep, Trial, shown_options
from ..evaluate.sweep_sets import SetsSweep, SetsTrial
from .text import COMPARISON_COLUMNS, comparison_cells, estimate_cells, group_title, p_text, printable, render

if TYPE_CHECKING:
    import rich.console


#: Titles of sections whose name does not explain the columns.
_TITLES = {"pools": "pools: share of the gold lost, by size"}
_TEST_COLUMNS = ("options", "mean", "95 %", "won", "lost", "p")
_TUNE_COLUMNS = (*_TEST_COLUMNS[:-1], "p (Holm)")


class Row(NamedTuple):
    """Cells of a row; a ``"heading"`` names the rows below it, and a ``"dropped"`` row shows what was not used."""

    cells: tuple[str, ...]
    kind: Literal["", "heading", "dropped"] = ""


@dataclass(frozen=True)
class Table:
    """A table of text, which can be written for a terminal, as HTML, or as JSON.

    Parameters
    ----------
    title : str
    columns : tuple of str
    rows : tuple of Row
        Rows may have fewer cells than there are columns.
    text_columns : int
        Number of columns, from the first, that hold text and may wrap; the others are aligned right.

    Examples
    --------
    >>> from hopfuse.report import Row, Table
    >>> table = Table("all", ("run", "mean"), (Row(("a<b", "0.5")),))
    >>> table.to_dict()
    {'title': 'all', 'columns': ['run', 'mean'], 'rows': [['a<b', '0.5']]}
    >>> "a&lt;b" in table.to_html()
    True
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    text_columns: int = 1

    def to_rich(self) -> rich.console.Group:
        """Return title and table for a terminal, with control characters escaped (:func:`printable`).

        Raises
        ------
        MissingExtraError
            Rich is not installed.
        """
        import_extra("rich", "showing tables in a terminal")
        from rich.box import SIMPLE_HEAD
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        made = RichTable(
            box=SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_header=any(self.columns),
        )
        for at, column in enumerate(self.columns):
            if at < self.text_columns:
                made.add_column(Text(printable(column)), overflow="fold")
            else:
                made.add_column(Text(printable(column)), justify="right", no_wrap=True)
        styles = {"heading": "bold", "dropped": "dim"}
        for row in self.rows:
            made.add_row(*(Text(printable(cell)) for cell in row.cells), style=styles.get(row.kind))
        return Group(Text(printable(self.title), style="bold"), made)  # a title in the table would wrap at its width

    def to_html(self) -> str:
        """Return the table as escaped HTML.

        Raises
        ------
        MissingExtraError
            Jinja2 is not installed.
        """
        return render("table.html", table=self)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        rows = [list(row.cells) for row in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows}

    def select(self, title: str, columns: Sequence[int]) -> Table:
        """Return a table of some of the columns, with another title."""
        rows = tuple(
            row._replace(cells=tuple(row.cells[c] for c in columns if c < len(row.cells))) for row in self.rows
        )
        return Table(title, tuple(self.columns[c] for c in columns), rows, self.text_columns)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> Table:
    """Return a table of plain rows.

    Examples
    --------
    >>> from hopfuse.report import table
    >>> len(table("all", ["run"], [["dense"], ["graph"]]).rows)
    2
    """
    return Table(title, tuple(columns), tuple(Row(tuple(row)) for row in rows), text_columns)


def mean_tables(evaluation: Evaluation) -> list[Table]:
    """Return a table of the means in percent, with 95 % intervals, for each group of queries.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, evaluate
    >>> from hopfuse.report import mean_tables
    >>> run = hf.Hits([[1, 5]], [[0.9, 0.1]])
    >>> mean_tables(evaluate(Qrels(["a"], [[1, 2]]), {"dense": run}, ["recall@2"], by_hops=False))[0].title
    'all: 1 query'
    """
    return [
        table(
            group_title(group),
            ("metric", "run", "mean", "95 %", "n"),
            [
                ("" if at else metric, run, *estimate_cells(row[metric]))
                for metric in evaluation.metrics
                for at, (run, row) in enumerate(group.estimates.items())
            ],
            text_columns=2,
        )
        for group in evaluation.groups
    ]


def comparison_tables(evaluation: Evaluation) -> list[Table]:
    """Return a table of the comparisons with the baseline, differences in percent, for each group of queries.

    "p (Holm)" is corrected for the number of runs; "detects" is the smallest difference that this many queries detect
    with a power of 0.8.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, evaluate
    >>> from hopfuse.report import comparison_tables
    >>> runs = {"dense": hf.Hits([[5]], [[0.9]]), "graph": hf.Hits([[1]], [[0.9]])}
    >>> found = evaluate(Qrels(["a"], [[1]]), runs, ["hit@1"], by_hops=False, baseline="dense")
    >>> [table.title for table in comparison_tables(found)]
    ['all: 1 query, against dense']
    """
    title = f", against {evaluation.baseline}"
    return [
        Table(group_title(group) + title, ("", *COMPARISON_COLUMNS), tuple(rows))
        for group in evaluation.groups
        if (rows := _comparisons(group))
    ]


def evaluation_tables(evaluation: Evaluation) -> list[Table]:
    """Return the tables of an evaluation for a terminal of 80 columns: means, then comparisons in two parts.

    Print them with ``rich.print(*(table.to_rich() for table in tables))``.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, evaluate
    >>> from hopfuse.report import evaluation_tables
    >>> run = hf.Hits([[1, 5]], [[0.9, 0.1]])
    >>> len(evaluation_tables(evaluate(Qrels(["a"], [[1, 2]]), {"dense": run}, ["recall@2"], by_hops=False)))
    1
    """
    tables = mean_tables(evaluation)
    for whole in comparison_tables(evaluation):
        tables.append(whole.select(whole.title, range(8)))
        if any(row.cells[8:] and row.cells[8] != "-" for row in whole.rows):
            tables.append(whole.select(f"{whole.title}: odds ratio, detectable difference", (0, 8, 9, 10)))
        else:
            tables.append(whole.select(f"{whole.title}: detectable difference", (0, 10)))
    return tables


def score_table(distributions: Mapping[str, Mapping[str, ScoreDistribution]]) -> Table:
    """Return a table of the counts, medians and AUC of :func:`hopfuse.evaluate.score_distributions`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, Run, score_distributions
    >>> from hopfuse.report import score_table
    >>> runs = {"dense": Run(hf.Hits([[4, 7]], [[3.0, 2.0]]))}
    >>> len(score_table(score_distributions(Qrels(["a"], gold=[[4]]), runs)).rows)
    2
    """
    rows = []
    for run, kinds in distributions.items():
        for kind, found in kinds.items():
            right, wrong = (f"{int(part.sum()):,}" for part in (found.relevant, found.other))
            numbers = ["-" if v is None else f"{v:.3g}" for v in (found.relevant_median, found.other_median, found.auc)]
            rows.append((run, kind, right, numbers[0], wrong, numbers[1], numbers[2]))
    columns = ("run", "scores", "relevant", "median", "other", "median", "AUC")
    return table("scores before and after calibration, of all queries", columns, rows, text_columns=2)


def query_tables(evaluation: Evaluation, traces: Mapping[str, Mapping[str, Any]], show: int = 3) -> list[Table]:
    """Return tables of queries won and lost under the first metric, with the ranks of their gold passages.

    Parameters
    ----------
    evaluation : Evaluation
        Without a baseline, there are no tables.
    traces : mapping of str to mapping
        From :func:`hopfuse.evaluate.traces` for these queries.
    show : int
        Maximum number of queries in each table.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, evaluate, traces
    >>> from hopfuse.report import query_tables
    >>> names = PassageNames(["doc", "other"])
    >>> qrels = Qrels(["q1"], [[0]])
    >>> runs = {"dense": Run(hf.Hits([[1]], [[0.5]])), "graph": Run(hf.Hits([[0]], [[0.5]]))}
    >>> found = evaluate(qrels, runs, ["hit@1"], baseline="dense")
    >>> [table.title for table in query_tables(found, traces(["q1"], qrels, runs, names))]
    ['hit@1, won by graph against dense: 1 of 1']
    """
    metric, tables = evaluation.metrics[0], []
    for run in evaluation.runs if evaluation.baseline is not None and show > 0 else ():
        if run == evaluation.baseline:
            continue
        for word, queries in (("won", evaluation.wins(run, metric)), ("lost", evaluation.losses(run, metric))):
            shown = [traces[query] for query in queries[:show]]
            if shown:
                title = f"{metric}, {word} by {run} against {evaluation.baseline}: {len(shown)} of {len(queries)}"
                tables.append(table(title, ("", *shown[0]["first"]), [row for one in shown for row in _query(one)]))
    return tables


def sweep_tables(sweep: Sweep, show: int = 15) -> list[Table]:
    """Return tables of the best trials on the tune half, of the metric by option, and of the test half.

    Parameters
    ----------
    sweep : Sweep
    show : int
        Maximum number of trials, the best first; the baseline is always included.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, sweep
    >>> from hopfuse.report import sweep_tables
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> tables = sweep_tables(sweep(run, qrels, {"good": [2, 8, 5]}, baseline={"good": 1}, metric="hit@1"))
    >>> [table.title.split(":")[0] for table in tables]
    ['hit@1 on 20 tune queries', 'hit@1 against good, tune half', 'hit@1 on 20 test queries']
    """
    curves = [_curves(f"{sweep.metric} against {name}, tune half", name, c) for name, c in option_curves(sweep).items()]
    return [tune_table(sweep, show), *curves, final_table(sweep)]


def tune_table(sweep: Sweep, show: int | None = None) -> Table:
    """Return a table of the ``show`` best trials on the tune half, and the baseline."""
    trials = sorted(sweep.tune, key=lambda trial: -trial.estimate.mean)
    kept = [trial for at, trial in enumerate(trials) if show is None or at < show or trial.comparison is None]
    of = f"the best {len(kept)} of {len(trials)} trials" if len(kept) < len(trials) else f"{len(kept)} trials"
    title = f"{sweep.metric} on {sweep.tune[0].estimate.n} tune queries: {of}"
    return table(title, _TUNE_COLUMNS, [_trial(trial, sweep, corrected=True) for trial in kept])


def final_table(sweep: Sweep) -> Table:
    """Return a table of the baseline and the selected options on the test half."""
    title = f"{sweep.metric} on {sweep.test[0].estimate.n} test queries: run once"
    return table(title, _TEST_COLUMNS, [_trial(trial, sweep, corrected=False) for trial in sweep.test])


def option_text(options: Options) -> str:
    """Return options as text: the leg or the method, then the rest.

    Examples
    --------
    >>> option_text({"method": "boltzmann", "alpha": 0.7, "pool graph": 30}), option_text({"leg": "dense"})
    ('boltzmann, alpha 0.7, pool graph 30', 'dense alone')
    """
    if set(options) == {"leg"}:
        return f"{options['leg']} alone"
    return ", ".join(str(v) if name == "method" else f"{name} {v}" for name, v in shown_options(options).items())


def section_tables(sections: Mapping[str, Any]) -> list[Table]:
    """Return a table for each section of a diagnosis.

    Parameters
    ----------
    sections : mapping of str to mapping or list of mapping
        From :func:`hopfuse.diagnose.diagnose`.

    Examples
    --------
    >>> from hopfuse.report import section_tables
    >>> tables = section_tables({"graph": {"passages": 1200, "share": 0.5}, "pools": [{"size": 5, "dense": 0.25}]})
    >>> [row.cells for table in tables for row in table.rows]
    [('passages', '1,200'), ('share', '0.500'), ('5', '0.250')]
    """
    tables = []
    for name, section in sections.items():
        title = _TITLES.get(name, name)
        if isinstance(section, Mapping):
            tables.append(table(title, ("", ""), [(key, _value(v)) for key, v in section.items()], text_columns=2))
        else:
            words = sum(isinstance(value, str) for value in section[0].values())
            rows = [[_value(value) for value in row.values()] for row in section]
            tables.append(table(title, tuple(section[0]), rows, text_columns=words))
    return tables


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {number:,}" for name, number in value.items()) or "none"
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _comparisons(group: Group) -> list[Row]:
    rows = []
    for run, row in group.comparisons.items():
        compared = [Row((metric, *comparison_cells(c))) for metric, c in row.items() if c.n]
        rows += [Row((run,), "heading"), *compared] if compared else []
    return rows


def _query(trace: Mapping[str, Any]) -> list[list[str]]:
    rows = [[f"{trace['id']}  {trace['question']}".rstrip()]]
    for passage in trace["gold"]:
        hop = "" if passage["hop"] is None else f"hop {passage['hop']}: "
        ranks = ["-" if found is None else str(found["rank"]) for found in passage["runs"].values()]
        rows.append([f"  {hop}{passage['title'] or passage['id']}", *ranks])
    for run, answer in trace.get("answers", {}).items():
        rows.append([f"  {run} answers {answer!r}, accepted {', '.join(map(repr, trace['accepted'])) or 'none'}"])
    return rows


def _trial(trial: Trial, sweep: Sweep, *, corrected: bool) -> tuple[str, ...]:
    """Return options, mean, interval, won, lost and p; the baseline and the selected options are marked."""
    marks = (("baseline", trial.comparison is None), ("selected", trial.options == sweep.selected.options))
    mark = ", ".join(word for word, true in marks if true)
    name = option_text(trial.options)
    c = trial.comparison
    compared = ("", "", "") if c is None else (str(c.wins), str(c.losses), p_text(c.p_holm if corrected else c.p_value))
    return (f"{mark}: {name}" if mark else name, *estimate_cells(trial.estimate)[:2], *compared)


def _curves(title: str, option: str, curves: Sequence[Curve]) -> Table:
    rows = [
        ("" if at else option_text(curve.others), f"{value:.6g}", *estimate_cells(estimate)[:2])
        for curve in curves
        for at, (value, estimate) in enumerate(curve.points)
    ]
    return table(title, ("method and other options", option, "mean", "95 %"), rows)


# ---- Sweeps over several sets ----------------------------------------------------------------------------------------


def sets_tables(found: SetsSweep, show: int = 15) -> list[Table]:
    """Return a table of the trials with the smallest worst losses on the tune halves, and one of the test halves.

    Parameters
    ----------
    found : SetsSweep
    show : int
        Maximum number of trials; the baseline, the selected trial and the best of each set are always included.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import JudgedSet, Qrels, sweep_sets
    >>> from hopfuse.report import sets_tables
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> news = JudgedSet(run, Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)]))
    >>> tables = sets_tables(sweep_sets({"news": news}, {"good": [2, 8]}, baseline={"good": 1}, metric="hit@1"))
    >>> [table.title for table in tables]
    ["hit@1, tune halves: loss against each set's best of 3 trials", 'hit@1, test halves: run once']
    """
    return [_tuned(found, show), _tested(found)]


def _tuned(found: SetsSweep, show: int) -> Table:
    order = sorted(found.trials, key=lambda trial: (trial.worst, trial.mean))
    named = _named(found)
    kept = [trial for at, trial in enumerate(order) if at < show or any(trial is one for one, _ in named)]
    rows = []
    for trial in kept:
        words = [word for one, word in named if trial is one]
        name = option_text(trial.options) or "defaults"
        losses = [f"{100 * loss:.1f}" for loss in (trial.worst, trial.mean)]
        means = [f"{100 * trial.means[one]:.1f}" for one in found.test]
        rows.append([f"{', '.join(words)}: {name}" if words else name, *losses, *means])
    title = f"{found.metric}, tune halves: loss against each set's best of {len(found.trials)} trials"
    return table(title, ["options", "worst\nloss", "mean\nloss", *found.test], rows)


def _named(found: SetsSweep) -> list[tuple[SetsTrial, str]]:
    bests = [(trial, f"best on {name}") for name, trial in found.best.items()]
    return [(found.trials[0], "baseline"), (found.selected, "selected"), (found.by_mean, "least mean"), *bests]


def _tested(found: SetsSweep) -> Table:
    rows = []
    for name, one in found.test.items():
        c = one.against_best
        means = [f"{100 * one.estimates[who].mean:.1f}" for who in ("baseline", "selected", "by mean", "best")]
        interval = "" if c.low is None or c.high is None else f"{100 * c.low:+.1f} to {100 * c.high:+.1f}"
        difference = f"{100 * c.difference:+.1f}"
        rows.append([name, str(c.n), *means, difference, interval, p_text(one.against_baseline.p_holm)])
    columns = ["set", "n", "base", "selected", "least\nmean", "set's\nbest", "to best", "95 %", "p to base\n(Holm)"]
    return table(f"{found.metric}, test halves: run once", columns, rows)
